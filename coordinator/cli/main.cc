// The coordinator: `resbm COMMAND`. Commands are listed in command_line.cc.
#include "coordinator/cli/command_line.h"

int main(int argc, char** argv) {
  resbm::coordinator::CommandLine line;
  if (const auto code = line.Parse(argc, argv)) return *code;
  return line.Run();
}
