#include "coordinator/cli/init_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/options.h"
#include "coordinator/job/describe_fields.h"
#include "coordinator/job/presets.h"
#include "coordinator/report/atomic_file.h"

namespace resbm::coordinator {

void AddTo(CLI::App* app, InitOptions* options) {
  app->add_option("--preset", options->preset, absl::StrFormat("One of: %s", absl::StrJoin(PresetNames(), ", ")))
      ->type_name("NAME");
  app->add_option("output", options->output, "File to write, or - for stdout (default: job.textproto)")
      ->type_name("FILE");
  app->footer("Example:\n  resbm init --preset cifar10 cifar10.textproto");
}

void AddTo(CLI::App* app, FieldsOptions* options) {
  app->add_option("path", options->path, "Only this field, e.g. boundary.ratio")->type_name("PATH");
  app->footer("Example:\n  resbm fields optimizer.schedule");
}

int Init(const InitOptions& options) {
  const auto text = PresetText(options.preset);
  if (!text.ok()) {
    PrintError("init", text.status());
    return kExitUsage;
  }
  if (options.output == "-") {
    std::cout << *text << std::flush;
    return kExitOk;
  }
  // O_EXCL: a job that somebody wrote is never overwritten.
  const int fd = open(options.output.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    PrintError("init", absl::AlreadyExistsError(absl::StrFormat(
                           "cannot write %s: %s; name another file", options.output, strerror(errno))));
    return kExitUsage;
  }
  const absl::Status written = WriteAll(fd, *text, options.output);
  close(fd);
  if (!written.ok()) {
    unlink(options.output.c_str());
    PrintError("init", written);
    return kExitUsage;
  }
  std::cerr << "wrote " << options.output << "; next: resbm train --job " << options.output << std::endl;
  return kExitOk;
}

int Fields(const FieldsOptions& options) {
  const auto text = DescribeFields(options.path);
  if (!text.ok()) {
    PrintError("fields", text.status());
    return kExitUsage;
  }
  std::cout << *text << std::flush;
  return kExitOk;
}

}  // namespace resbm::coordinator
