// Writes an event file for tensorboard_test.py, which reads it back: write_tensorboard DIRECTORY.
#include <iostream>
#include <limits>

#include "absl/time/time.h"
#include "coordinator/report/tensorboard_writer.h"

int main(int argc, char** argv) {
  using resbm::coordinator::TensorboardWriter;
  if (argc != 2) return 2;
  const absl::Time start = absl::FromUnixSeconds(1700000000);
  const auto writer = TensorboardWriter::Create(argv[1], start);
  absl::Status status = writer.status();
  if (status.ok()) status = (*writer)->AddText(0, start, "job", "    name: \"a\"\n    seed: 1");
  for (int step = 1; status.ok() && step <= 100; ++step) {
    status = (*writer)->AddScalars(step, start + absl::Milliseconds(250 * step),
                                   {{"loss", 2.0 / step}, {"bytes/group0.1/activations", 1e9 + step}});
  }
  if (status.ok()) {
    status =
        (*writer)->AddScalars(101, start + absl::Seconds(60), {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  }
  if (!status.ok()) {
    std::cerr << status << std::endl;
    return 1;
  }
  std::cout << (*writer)->path() << std::endl;
  return 0;
}
