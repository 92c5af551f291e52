// The coordinator: `resbm COMMAND`.
#include <iostream>

#include <CLI/CLI.hpp>

#include "coordinator/cli/compare_command.h"
#include "coordinator/cli/eval_command.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/init_command.h"
#include "coordinator/cli/sweep_command.h"
#include "coordinator/cli/train_command.h"
#include "coordinator/cli/verify_command.h"
#include "proto/base/version.h"

int main(int argc, char** argv) {
  using namespace resbm::coordinator;  // NOLINT: main only
  CLI::App app("Trains pipelines that are cut at residual bottlenecks, over slow networks.", "resbm");
  app.set_version_flag("--version", resbm::VersionText("resbm"));
  app.require_subcommand(1);
  app.footer("Example:\n  resbm init && resbm train --job job.textproto");

  InitOptions init;
  TrainOptions train;
  EvalOptions eval;
  CompareOptions compare;
  SweepOptions sweep;
  VerifyOptions verify;
  FieldsOptions fields;
  int code = kExitOk;
  CLI::App* command = app.add_subcommand("init", "Write a commented job file");
  AddTo(command, &init);
  command->callback([&] { code = Init(init); });
  command = app.add_subcommand("train", "Train a job");
  AddTo(command, &train);
  command->callback([&] { code = Train(train); });
  command = app.add_subcommand("eval", "Loss and accuracy of a run on its test set");
  AddTo(command, &eval);
  command->callback([&] { code = Eval(eval); });
  command = app.add_subcommand("sweep", "Accuracy against bytes over the values of a field, on part of the data");
  AddTo(command, &sweep);
  command->callback([&] { code = Sweep(sweep); });
  command = app.add_subcommand("compare", "Finished runs side by side");
  AddTo(command, &compare);
  command->callback([&] { code = CompareRunDirectories(compare); });
  command = app.add_subcommand("verify", "Check that the pipeline trains as one process does, bit for bit");
  AddTo(command, &verify);
  command->callback([&] { code = Verify(verify); });
  command = app.add_subcommand("fields", "Explain the fields of a job file");
  AddTo(command, &fields);
  command->callback([&] { code = Fields(fields); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" of code 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return code;
}
