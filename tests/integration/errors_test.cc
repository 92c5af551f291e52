// Bad input, from the command line on: one clear line, the documented exit code, nothing left behind.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/resbm/v1/link.grpc.pb.h"
#include "tests/support/program_test.h"
#include "tests/support/small_images.h"

namespace resbm {
namespace {

using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunProgram;
using testing::Strings;
using testing::WriteFileOrDie;
using testing::WriteSmallMnist;

class Errors : public testing::ImageProgramTest {
 protected:
  Errors() : ImageProgramTest(20, 10) { WriteJob(""); }

  // No run directory may stay.
  void TearDown() override {
    ImageProgramTest::TearDown();
    EXPECT_FALSE(std::filesystem::exists(Path("run")));
  }

  void WriteJob(const std::string& more) { ImageProgramTest::WriteJob("optimizer { sgd {} }\n" + more); }
  std::string Job() { return Path("job.textproto"); }

  // On local stages unless told otherwise.
  Finished Train(const Strings& more) {
    Strings arguments = {"train", "--job", Job(), "--run-dir", Path("run")};
    if (std::find(more.begin(), more.end(), "--stages") == more.end() &&
        std::find(more.begin(), more.end(), "--local-stages") == more.end()) {
      arguments.insert(arguments.end(), {"--local-stages", "2"});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  // A run that ended well.
  std::string Done() {
    const Finished run = RunProgram(TrainOf("job.textproto", "done", 2, {"run.steps=1", "run.evaluate=false"}));
    EXPECT_EQ(run.code, 0) << run.err;
    return Path("done");
  }
};

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
  const Finished run = Train({"--set", "data.mnist.directory=" + Path("nowhere")});
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

TEST_F(Errors, ADeviceThatIsNoneIsAFaultOfTheCommandLineAndLeavesNothing) {
  for (const std::string device : {"gpu", "cuda:0x"}) {
    const Finished run = RunProgram({resbm_, "train", "--job", Job(), "--run-dir", Path("run"), "--local-stages", "2",
                                     "--stage-server", stage_server_, "--device", device});
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr("--device: "));
    EXPECT_THAT(run.err, HasSubstr(device));
    EXPECT_FALSE(std::filesystem::exists(Path("run")));
  }
}

TEST_F(Errors, AnUnreachableStageIsNamedByTheDeadline) {
  const Finished run = Train({"--stages", "127.0.0.1:1,127.0.0.1:2", "--set", "timeouts.connect_seconds=1"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("stage 0 at 127.0.0.1:1"));
  EXPECT_THAT(run.err, HasSubstr("stage 1 at 127.0.0.1:2"));
}

TEST_F(Errors, AnExistingRunDirectoryIsNeverOverwritten) {
  const std::string existing = Path("existing");
  std::filesystem::create_directories(existing);
  WriteFileOrDie(existing + "/precious", "data");
  const Finished run = Run({"train", "--job", Job(), "--run-dir", existing, "--local-stages", "2"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(existing));
  EXPECT_EQ(testing::ReadFileOrDie(existing + "/precious"), "data");
  EXPECT_FALSE(std::filesystem::exists(existing + "/job.textproto"));
}

TEST_F(Errors, UsageErrorsAreCodeTwo) {
  EXPECT_EQ(Run({"trian"}).code, 2);
  EXPECT_EQ(Run({"train"}).code, 2);
  EXPECT_EQ(Run({"train", "--job", Path("no-such-job")}).code, 2);
  EXPECT_EQ(Train({"--stages", "127.0.0.1"}).code, 2);
  EXPECT_EQ(Train({"--stages", "127.0.0.1:5,127.0.0.1:5"}).code, 2);
  EXPECT_EQ(Train({"--stages", "127.0.0.1:5", "--local-stages", "2"}).code, 2);
  EXPECT_EQ(Run({"--help"}).code, 0);
  EXPECT_EQ(Run({"--version"}).code, 0);
}

TEST_F(Errors, NoStageServerProgramSaysWhichWasLookedFor) {
  const Finished run = RunProgram({resbm_, "train", "--job", Job(), "--run-dir", Path("run"), "--stage-server",
                                   Path("missing"), "--local-stages", "2"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(Path("missing")));
}

TEST_F(Errors, ATakenPortEndsTheStageServerWithCodeTwo) {
  std::string address;
  const auto first = StartStage(&address);
  const Finished second = RunProgram({stage_server_, "--listen", address, "--device", "cpu"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr(address));
  EXPECT_TRUE(first->running());
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
  testing::Subprocess run(
      {resbm_, "train", "--job", Job(), "--run-dir", Path("run"), "--stages", "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(testing::WaitUntil([&] { return service.loading.load(); }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130) << run.Stderr();
  EXPECT_THAT(run.Stderr(), HasSubstr("interrupted before the first step; there is nothing to save"));
}

TEST_F(Errors, AStageThatRefusesTheJobSaysWhyAlsoWhereWeightsAreSentToIt) {
  const std::string run = Done();
  std::string address;
  const auto stage = StartStage(&address, {"--threads", "1"});
  const Finished eval = Run({"eval", "--run-dir", run, "--stages", address, "--set", "run.threads_per_stage=2"});
  EXPECT_EQ(eval.code, 3);
  EXPECT_THAT(eval.err, HasSubstr("--threads 1"));
  EXPECT_TRUE(stage->running());
}

TEST_F(Errors, WeightsOfAnotherModelAreAFilesFault) {
  const std::string run = Done();
  const Finished other =
      Run({"eval", "--run-dir", run, "--local-stages", "2", "--set", "model.resnet.stem.channels=16"});
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("stem"));
  const Finished missing = Run({"eval", "--run-dir", Path("none"), "--local-stages", "2"});
  EXPECT_EQ(missing.code, 2);
}

TEST_F(Errors, InitWritesAJobThatTrainAcceptsAndOverwritesNothing) {
  const std::string path = Path("new.textproto");
  EXPECT_EQ(Run({"init", path}).code, 0);
  const std::string text = testing::ReadFileOrDie(path);
  EXPECT_THAT(text, HasSubstr("fashion_mnist"));
  const Finished again = Run({"init", path});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr(path));
  EXPECT_EQ(testing::ReadFileOrDie(path), text);
  EXPECT_EQ(Run({"init", "--preset", "nonsense", "-"}).code, 2);
  const Finished gpt = Run({"init", "--preset", "byte-gpt", "-"});
  EXPECT_EQ(gpt.code, 0);
  EXPECT_THAT(gpt.out, HasSubstr("transformer"));
}

TEST_F(Errors, FieldsExplainsOneOrSaysWhichIsNear) {
  const Finished ratio = Run({"fields", "boundary.ratio"});
  EXPECT_EQ(ratio.code, 0);
  EXPECT_THAT(ratio.out, HasSubstr("16"));
  EXPECT_EQ(Run({"fields", "boundary.rato"}).code, 2);
}

}  // namespace
}  // namespace resbm
