// health_probe: asks a gRPC server for its health, for health checks that run a command. It knows the standard health
// service only, hence any server of gRPC can be asked.
#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "proto/base/version.h"

namespace {

constexpr int kExitOk = 0;
constexpr int kExitUnhealthy = 1;
constexpr int kExitUsage = 2;

// grpc.health.v1: HealthCheckRequest.service is field 1, not set to ask for the whole server; HealthCheckResponse.status
// is field 1, and 1 is SERVING.
constexpr char kMethod[] = "/grpc.health.v1.Health/Check";
constexpr int kServiceField = 1;
constexpr int kStatusField = 1;
constexpr std::uint64_t kServing = 1;

grpc::Status Check(const std::string& address, const std::string& service, double timeout_seconds,
                   grpc::ByteBuffer* reply) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000)));
  google::protobuf::UnknownFieldSet fields;
  if (!service.empty()) *fields.AddLengthDelimited(kServiceField) = service;
  std::string bytes;
  fields.SerializeToString(&bytes);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  // Shared: the callback may still be inside it when the answer is here.
  const auto done = std::make_shared<std::promise<grpc::Status>>();
  stub.UnaryCall(&context, kMethod, grpc::StubOptions(), &request, reply,
                 [done](grpc::Status status) { done->set_value(std::move(status)); });
  return done->get_future().get();
}

bool IsServing(const grpc::ByteBuffer& reply) {
  grpc::Slice slice;
  google::protobuf::UnknownFieldSet fields;
  if (!reply.DumpToSingleSlice(&slice).ok() || !fields.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return false;
  }
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() == kStatusField && field.type() == google::protobuf::UnknownField::TYPE_VARINT) {
      return field.varint() == kServing;
    }
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Asks a gRPC server for its health. Exit code 0: it serves; 1: it does not, or does not answer.",
               "health_probe");
  app.set_version_flag("--version", resbm::VersionText("health_probe"));
  app.footer(
      "Examples:\n"
      "  health_probe 127.0.0.1:50051                   whether it lives\n"
      "  health_probe 127.0.0.1:50051 --service ready   whether a stage server can be given work, or gets on with it");
  std::string address;
  std::string service;
  double timeout_seconds = 3;
  app.add_option("address", address, "The server")->type_name("HOST:PORT")->required();
  app.add_option("--service", service, "Of the server, by its name; not given: the server as a whole")->type_name("NAME");
  app.add_option("--timeout", timeout_seconds, "How long to wait for the answer")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" of code 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  grpc::ByteBuffer reply;
  const grpc::Status status = Check(address, service, timeout_seconds, &reply);
  if (!status.ok()) {
    std::cerr << "health_probe: " << address << ": "
              << (status.error_code() == grpc::StatusCode::NOT_FOUND ? "no service \"" + service + "\" there"
                                                                     : status.error_message())
              << std::endl;
    return kExitUnhealthy;
  }
  if (!IsServing(reply)) {
    std::cerr << "health_probe: " << address << " answers, but "
              << (service.empty() ? "does not serve" : "\"" + service + "\" does not serve") << std::endl;
    return kExitUnhealthy;
  }
  return kExitOk;
}
