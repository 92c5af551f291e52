// Bad input, from the command line on: one clear line, the documented exit code, nothing left behind.
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/resbm/v1/link.grpc.pb.h"
#include "tests/support/small_images.h"
#include "tests/support/subprocess.h"

namespace resbm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::CountProcesses;
using testing::Finished;
using testing::NewFolder;
using testing::RunProgram;
using testing::SmallMnistJob;
using testing::WriteFileOrDie;
using testing::WriteSmallMnist;

class Errors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { data_ = new std::string(WriteSmallMnist(20, 10)); }

  void SetUp() override {
    folder_ = NewFolder("errors");
    resbm_ = testing::RunfileFromEnvironment("RESBM");
    stage_server_ = folder_ + "/stage_server";
    std::filesystem::create_symlink(testing::RunfileFromEnvironment("STAGE_SERVER"), stage_server_);
    WriteJob("");
  }

  // Nothing may stay: no run directory, no stage server.
  void TearDown() override {
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
    EXPECT_EQ(CountProcesses(stage_server_), 0);
  }

  void WriteJob(const std::string& more) {
    WriteFileOrDie(Job(), SmallMnistJob(*data_, "optimizer { sgd {} }\n" + more));
  }
  std::string Job() { return folder_ + "/job.textproto"; }

  Finished Train(std::vector<std::string> more) {
    std::vector<std::string> argv = {resbm_, "train", "--job", Job(), "--run-dir", folder_ + "/run", "--stage-server",
                                     stage_server_};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }

  static std::string* data_;
  std::string folder_, resbm_, stage_server_;
};
std::string* Errors::data_ = nullptr;

TEST_F(Errors, AnUnknownFieldNamesItsLineAndTheNearestName) {
  WriteJob("bondary { ratio: 4 }\n");
  const Finished run = Train({});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("job.textproto:"));
  EXPECT_THAT(run.err, HasSubstr("boundary"));
}

TEST_F(Errors, ARatioThatDoesNotDivideSuggestsOnesThatDo) {
  const Finished run = Train({"--set", "boundary.ratio=3"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("boundary.ratio: 3 does not divide 8 channels"));
  EXPECT_THAT(run.err, HasSubstr("try"));
}

TEST_F(Errors, MoreStagesThanCutsAllow) {
  const Finished run = Train({"--local-stages", "7"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("cut"));
}

TEST_F(Errors, AMissingDataFile) {
  const Finished run = Train({"--set", "data.mnist.directory=" + folder_ + "/nowhere"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("nowhere"));
}

TEST_F(Errors, ATruncatedDataFile) {
  const std::string images = WriteSmallMnist(20, 10);
  std::filesystem::resize_file(images + "/train-images-idx3-ubyte", 5000);
  const Finished run = Train({"--set", "data.mnist.directory=" + images});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("train-images-idx3-ubyte"));
}

TEST_F(Errors, AFieldThatIsNotImplementedIsRefusedNotIgnored) {
  const Finished run = Train({"--set", "checkpoint.every_steps=5"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("not implemented"));
  const Finished resume = Train({"--resume"});
  EXPECT_EQ(resume.code, 2);
  EXPECT_THAT(resume.err, HasSubstr("not implemented"));
}

TEST_F(Errors, APatternThatNoParameterMatchesIsAFaultOfTheJob) {
  const Finished run = Train({"--set", "optimizer.group=[{match: 'boundarys.*' rate_ratio: 2}]"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("optimizer.group[0].match"));
  EXPECT_THAT(run.err, HasSubstr("boundarys.*"));
}

TEST_F(Errors, Fp16IsOfCudaOnly) {
  const Finished run = Train({"--set", "precision=FP16"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("stage 0 computes on cpu; use BF16"));
}

TEST_F(Errors, AnUnreachableStageIsNamedByTheDeadline) {
  const Finished run = Train({"--stages", "127.0.0.1:1,127.0.0.1:2", "--set", "timeouts.connect_seconds=1"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("stage 0 at 127.0.0.1:1"));
  EXPECT_THAT(run.err, HasSubstr("stage 1 at 127.0.0.1:2"));
}

TEST_F(Errors, AnExistingRunDirectoryIsNeverOverwritten) {
  const std::string existing = folder_ + "/existing";
  std::filesystem::create_directories(existing);
  WriteFileOrDie(existing + "/precious", "data");
  const Finished run = RunProgram({resbm_, "train", "--job", Job(), "--run-dir", existing, "--stage-server", stage_server_});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(existing));
  EXPECT_EQ(testing::ReadFileOrDie(existing + "/precious"), "data");
  EXPECT_FALSE(std::filesystem::exists(existing + "/job.textproto"));
}

TEST_F(Errors, UsageErrorsAreCodeTwo) {
  EXPECT_EQ(RunProgram({resbm_, "trian"}).code, 2);
  EXPECT_EQ(RunProgram({resbm_, "train"}).code, 2);
  EXPECT_EQ(RunProgram({resbm_, "train", "--job", folder_ + "/no-such-job"}).code, 2);
  EXPECT_EQ(Train({"--stages", "127.0.0.1"}).code, 2);
  EXPECT_EQ(Train({"--stages", "127.0.0.1:5,127.0.0.1:5"}).code, 2);
  EXPECT_EQ(Train({"--stages", "127.0.0.1:5", "--local-stages", "2"}).code, 2);
  EXPECT_EQ(RunProgram({resbm_, "--help"}).code, 0);
  EXPECT_EQ(RunProgram({resbm_, "--version"}).code, 0);
}

TEST_F(Errors, NoStageServerProgramSaysWhichWasLookedFor) {
  const Finished run = RunProgram({resbm_, "train", "--job", Job(), "--run-dir", folder_ + "/run", "--stage-server",
                            folder_ + "/missing", "--local-stages", "2"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(folder_ + "/missing"));
}

TEST_F(Errors, ATakenPortEndsTheStageServerWithCodeTwo) {
  testing::Subprocess first({stage_server_, "--listen", "127.0.0.1:0", "--device", "cpu"});
  const std::string address = first.WaitForLine("LISTENING ");
  ASSERT_NE(address, "");
  const Finished second = RunProgram({stage_server_, "--listen", address, "--device", "cpu"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr(address));
  EXPECT_TRUE(first.running());
}

TEST_F(Errors, AWorkerOfAnotherVersionIsRefusedWithBothVersions) {
  class Newer : public v1::StageControl::Service {
    grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*, v1::DescribeReply* reply) override {
      reply->set_min_protocol_version(7);
      reply->set_max_protocol_version(9);
      return grpc::Status::OK;
    }
  } service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const Finished run = Train({"--stages", "127.0.0.1:" + std::to_string(port)});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("7 to 9"));
  EXPECT_THAT(run.err, HasSubstr("version 1"));
}

TEST_F(Errors, SomethingElseThanAStageServer) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  v1::StageLink::Service other;
  builder.RegisterService(&other);
  const auto server = builder.BuildAndStart();
  const Finished run = Train({"--stages", "127.0.0.1:" + std::to_string(port)});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("does not answer as a stage server"));
}

TEST_F(Errors, AnInterruptWhileTheStagesLoadLeavesNothingBehind) {
  class Loads : public v1::StageControl::Service {
   public:
    std::atomic<bool> loading = false;

   private:
    grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*, v1::DescribeReply* reply) override {
      reply->set_min_protocol_version(1);
      reply->set_max_protocol_version(1);
      return grpc::Status::OK;
    }
    grpc::Status Session(grpc::ServerContext*,
                         grpc::ServerReaderWriter<v1::ControlEvent, v1::ControlRequest>* stream) override {
      v1::ControlRequest request;
      while (stream->Read(&request) && !request.has_release()) {
        loading = request.has_resume();
        if (!request.has_attach()) continue;
        v1::ControlEvent event;
        *event.mutable_fence() = request.fence();
        event.mutable_attached()->set_protocol_version(1);
        stream->Write(event);
      }
      return grpc::Status::OK;
    }
  } service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  testing::Subprocess run({resbm_, "train", "--job", Job(), "--run-dir", folder_ + "/run", "--stages",
                           "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(testing::WaitUntil([&] { return service.loading.load(); }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130) << run.Stderr();
  EXPECT_THAT(run.Stderr(), HasSubstr("interrupted before the first step; there is nothing to save"));
}

TEST_F(Errors, AStageThatRefusesTheJobSaysWhyAlsoWhereWeightsAreSentToIt) {
  const std::string run = folder_ + "/done";
  ASSERT_EQ(RunProgram({resbm_, "train", "--job", Job(), "--run-dir", run, "--stage-server", stage_server_, "--device", "cpu",
                 "--set", "run.steps=1", "--set", "run.evaluate=false", "-q"})
                .code,
            0);
  testing::Subprocess stage({stage_server_, "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1"});
  const std::string address = stage.WaitForLine("LISTENING ");
  ASSERT_NE(address, "");
  const Finished eval = RunProgram({resbm_, "eval", "--run-dir", run, "--stages", address, "--set", "run.threads_per_stage=2"});
  EXPECT_EQ(eval.code, 3);
  EXPECT_THAT(eval.err, HasSubstr("--threads 1"));
  EXPECT_TRUE(stage.running());
}

TEST_F(Errors, WeightsOfAnotherModelAreAFilesFault) {
  const std::string run = folder_ + "/done";
  ASSERT_EQ(RunProgram({resbm_, "train", "--job", Job(), "--run-dir", run, "--stage-server", stage_server_, "--device", "cpu",
                 "--set", "run.steps=1", "--set", "run.evaluate=false", "-q"})
                .code,
            0);
  const Finished other = RunProgram({resbm_, "eval", "--run-dir", run, "--stage-server", stage_server_, "--device", "cpu",
                              "--set", "model.resnet.stem.channels=16"});
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("stem"));
  const Finished missing = RunProgram({resbm_, "eval", "--run-dir", folder_ + "/none", "--stage-server", stage_server_});
  EXPECT_EQ(missing.code, 2);
}

TEST_F(Errors, InitWritesAJobThatTrainAcceptsAndOverwritesNothing) {
  const std::string path = folder_ + "/new.textproto";
  EXPECT_EQ(RunProgram({resbm_, "init", path}).code, 0);
  const std::string text = testing::ReadFileOrDie(path);
  EXPECT_THAT(text, HasSubstr("fashion_mnist"));
  const Finished again = RunProgram({resbm_, "init", path});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr(path));
  EXPECT_EQ(testing::ReadFileOrDie(path), text);
  EXPECT_EQ(RunProgram({resbm_, "init", "--preset", "nonsense", "-"}).code, 2);
  const Finished gpt = RunProgram({resbm_, "init", "--preset", "byte-gpt", "-"});
  EXPECT_EQ(gpt.code, 0);
  EXPECT_THAT(gpt.out, HasSubstr("transformer"));
}

TEST_F(Errors, FieldsExplainsOneOrSaysWhichIsNear) {
  const Finished ratio = RunProgram({resbm_, "fields", "boundary.ratio"});
  EXPECT_EQ(ratio.code, 0);
  EXPECT_THAT(ratio.out, HasSubstr("16"));
  EXPECT_EQ(RunProgram({resbm_, "fields", "boundary.rato"}).code, 2);
}

}  // namespace
}  // namespace resbm
