#!/usr/bin/env python3
"""Peak memory of each stage with and without a ResBM at the cut, and with recomputation and bf16.

  bazel build //coordinator/cli:resbm //stage_server
  python3 tests/benchmarks/memory.py [--steps 3]

Two residual blocks of 64 channels at 28x28 in two stages, cut between them, AdamW. Bytes are exact and, up to the
inputs of a step that come early or late, the same at every run on the CPU: LibTorch's allocator counts them, and tensors that wait for a link are added (docs/benchmarks/
memory.md says what each column holds).
"""
import argparse
import json
import os
import subprocess
import tempfile

JOB = """
name: "memory-benchmark"
model { resnet {
  input { channels: 1 height: 28 width: 28 }
  stem { channels: 64 }
  group { blocks: 2 channels: 64 }
} }
boundary { ratio: 16 }
cut_point { after: "group0.0" }
batch { samples: 128 micro_batches: 8 }
optimizer { adamw { learning_rate: 0.001 } }
data { fashion_mnist {} limit_train: 1280 }
run { evaluate: false }
"""

ARMS = [
    ("identity", ["boundary.kind=IDENTITY"]),
    ("identity + block", ["boundary.kind=IDENTITY_BLOCK"]),
    ("resbm r=16", []),
    ("resbm r=4", ["boundary.ratio=4"]),
]

MODES = [
    ("1F1B", []),
    ("GPipe", ["schedule.kind=GPIPE"]),
    ("GPipe, recompute BOUNDARY", ["schedule.kind=GPIPE", "recompute=BOUNDARY"]),
    ("1F1B, bf16", ["precision=BF16"]),
]


def run(binary, job, fields, steps, folder):
    command = [binary, "train", "--job", job, "--run-dir", folder, "--local-stages", "2", "--device", "cpu", "-q",
               "--set", "run.steps=%d" % steps]
    for field in fields:
        command += ["--set", field]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "summary.json")) as f:
        return json.load(f)["stages"]


def mib(value):
    return "%.1f" % (value / 2**20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--resbm", default="bazel-bin/coordinator/cli/resbm")
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    print("| schedule | boundary | stage | peak MiB | activations | buffers | weights + optimizer | against identity |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        job = os.path.join(folder, "job.textproto")
        with open(job, "w") as f:
            f.write(JOB)
        for m, (mode, mode_fields) in enumerate(MODES):
            base = None
            for a, (arm, fields) in enumerate(ARMS):
                stages = run(arguments.resbm, job, fields + mode_fields, arguments.steps,
                             os.path.join(folder, "%d-%d" % (m, a)))
                peaks = [s["peak_memory_bytes"] for s in stages]
                base = base or [p["total"] for p in peaks]
                for s, peak in enumerate(peaks):
                    change = "" if a == 0 else "%+.1f %%" % (100.0 * (peak["total"] - base[s]) / base[s])
                    print("| %s | %s | %d | %s | %s | %s | %s | %s |" % (
                        mode, arm, s, mib(peak["total"]), mib(peak["activations"]), mib(peak["buffers"]),
                        mib(peak["weights"] + peak["optimizer"]), change), flush=True)


if __name__ == "__main__":
    main()
