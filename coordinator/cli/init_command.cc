#include "coordinator/cli/init_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/job/describe_fields.h"
#include "coordinator/job/presets.h"
#include "coordinator/report/atomic_file.h"

namespace resbm::coordinator {

void AddTo(CLI::App* app, InitOptions* options) {
  app->add_option("--preset", options->preset, absl::StrFormat("What to train (default: %s)", options->preset))
      ->type_name(absl::StrJoin(PresetNames(), "|"));
  app->add_option("output", options->file, "File to write, or - for stdout (default: job.textproto)")
      ->type_name("FILE");
  AddTo(app, &options->output, "Print the name of the file as JSON on stdout");
  app->footer(
      "Examples:\n"
      "  resbm init\n"
      "  resbm init --preset cifar10 cifar10.textproto");
}

void AddTo(CLI::App* app, FieldsOptions* options) {
  app->add_option("path", options->path, "Only this field and what is in it, e.g. boundary.ratio")->type_name("PATH");
  AddTo(app, &options->output, "Print the fields as JSON on stdout");
  app->footer(
      "Examples:\n"
      "  resbm fields\n"
      "  resbm fields optimizer.schedule");
}

int Init(const InitOptions& options) {
  const auto fail = [](const absl::Status& status) {
    PrintError("init", status);
    return kExitUsage;
  };
  const auto text = PresetText(options.preset);
  if (!text.ok()) return fail(text.status());
  if (options.file == "-") {
    if (options.output.json) return fail(absl::InvalidArgumentError("--json and - both want stdout; name a file"));
    std::cout << *text << std::flush;
    return kExitOk;
  }
  // O_EXCL: a job that somebody wrote is never overwritten.
  const int fd = open(options.file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return fail(absl::AlreadyExistsError(
        absl::StrFormat("cannot write %s: %s; name another file", options.file, strerror(errno))));
  }
  const absl::Status written = WriteAll(fd, *text, options.file);
  close(fd);
  if (!written.ok()) {
    unlink(options.file.c_str());
    return fail(written);
  }
  if (options.output.json) {
    std::cout << nlohmann::ordered_json{{"job", options.file}, {"preset", options.preset}}.dump(2) << std::endl;
  } else if (!options.output.quiet) {
    std::cerr << "wrote " << options.file << "; next: resbm train --job " << options.file << std::endl;
  }
  return kExitOk;
}

int Fields(const FieldsOptions& options) {
  const auto text = options.output.json ? FieldsJson(options.path) : DescribeFields(options.path);
  if (!text.ok()) {
    PrintError("fields", text.status());
    return kExitUsage;
  }
  std::cout << *text << std::flush;
  return kExitOk;
}

}  // namespace resbm::coordinator
