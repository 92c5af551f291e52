#!/usr/bin/env python3
"""What cutting a model in two costs or gains on one machine, without link limits.

  bazel build //coordinator/cli:resbm //stage_server
  python3 tests/benchmarks/pipeline.py [--steps 8] [--rounds 3]

One residual block of 64 channels at 28x28 a stage, micro-batches of 16, M = 16: the unsplit model in one
stage server with two threads against two stage servers with one thread each, on the same two cores. The
model is the same, its boundary included. Rounds alternate, so that a machine that slows down slows both. Prints a Markdown table; samples/s of the
median step, the first two steps of each run left out.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile

JOB = """
name: "pipeline-benchmark"
model { resnet {
  input { channels: 1 height: 28 width: 28 }
  stem { channels: 64 }
  group { blocks: 2 channels: 64 }
} }
boundary { ratio: 16 }
cut_point { after: "group0.0" }
batch { samples: 256 micro_batches: 16 }
optimizer { sgd { learning_rate: 0.01 momentum: 0.9 } }
data { fashion_mnist {} limit_train: 2560 }
"""

ARMS = [("unsplit, P=1, 2 threads", 1, 2), ("two stages, P=2, 1 thread each", 2, 1)]


def run(binary, job, stages, threads, steps, folder):
    subprocess.run(
        [binary, "train", "--job", job, "--run-dir", folder, "--local-stages", str(stages), "--device", "cpu", "-q", "--json",
         "--set", "run={steps: %d threads_per_stage: %d evaluate: false}" % (steps, threads)],
        check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "metrics.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    with open(os.path.join(folder, "summary.json")) as f:
        summary = json.load(f)
    return statistics.median(r["samples"] / r["step_seconds"] for r in rows[2:]), summary


def cpu_name():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--resbm", default="bazel-bin/coordinator/cli/resbm")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rates = {name: [] for name, _, _ in ARMS}
    summaries = {}
    with tempfile.TemporaryDirectory() as folder:
        job = os.path.join(folder, "job.textproto")
        with open(job, "w") as f:
            f.write(JOB)
        for r in range(arguments.rounds):
            for name, stages, threads in ARMS:
                rate, summaries[name] = run(
                    arguments.resbm, job, stages, threads, arguments.steps, os.path.join(folder, "%d-%d" % (r, stages)))
                rates[name].append(rate)
    print("%s, %d cores\n" % (cpu_name(), os.cpu_count()))
    print("| arm | samples/s, each round | median | bubble | waiting for links |")
    print("|---|---|---|---|---|")
    for name, _, _ in ARMS:
        s = summaries[name]
        print("| %s | %s | %.1f | %.1f %% | %.1f %% |" % (
            name, ", ".join("%.1f" % x for x in rates[name]), statistics.median(rates[name]),
            100 * s["bubble_share"], 100 * s["communication_share_exposed"]))
    unsplit, split = (statistics.median(rates[name]) for name, _, _ in ARMS)
    print("\ntwo stages reach %.2f of the unsplit model" % (split / unsplit))


if __name__ == "__main__":
    main()
