"""The runs and comparisons of tests/gpu_check.sh."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

JOB = """
name: "gpu-check"
model { resnet {
  input { channels: 1 height: 28 width: 28 }
  stem { channels: 32 stride: 2 }
  group { blocks: 2 channels: 32 }
  group { blocks: 1 channels: 64 stride: 2 }
} }
boundary { ratio: 16 }
cut_point { after: "group0.1" }
batch { samples: 96 micro_batches: 5 }
optimizer { sgd { learning_rate: 0.05 momentum: 0.9 nesterov: true } clip_norm: 1 }
data { fashion_mnist { directory: "/usr/share/datasets/fashion-mnist" } augment { crop: true } limit_train: 1920 limit_test: 500 }
run { steps: 20 }
"""


def train(arguments, folder, name, device, stages):
    where = os.path.join(folder, name)
    job = os.path.join(folder, "job.textproto")
    with open(job, "w") as f:
        f.write(JOB)
    command = [arguments.resbm, "train", "--job", job, "--run-dir", where, "--stage-server", arguments.stage_server,
               "--local-stages", str(stages), "--device", device, "-q", "--json"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        logs = "".join(open(os.path.join(where, n)).read() for n in sorted(os.listdir(where)) if n.endswith(".log")) \
            if os.path.isdir(where) else ""
        sys.exit("FAILED on %s with %d stages:\n%s%s" % (device, stages, done.stderr, logs))
    with open(os.path.join(where, "metrics.jsonl")) as f:
        losses = [json.loads(line)["loss"] for line in f]
    with open(os.path.join(where, "model.safetensors"), "rb") as f:
        weights = f.read()
    with open(os.path.join(where, "summary.json")) as f:
        summary = json.load(f)
    print("%-7s P=%d  loss %.6f -> %.6f  top-1 %.3f  %.0f samples/s  peak %s bytes" % (
        device, stages, losses[0], losses[-1], summary["top1"], summary["samples_per_second"],
        [s["peak_memory_bytes"]["total"] for s in summary["stages"]]))
    return losses, weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True)
    parser.add_argument("--resbm", required=True)
    parser.add_argument("--stage-server", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cpu, _ = train(arguments, folder, "reference", "cpu", 1)
        one, weights_one = train(arguments, folder, "one", arguments.device, 1)
        two, weights_two = train(arguments, folder, "two", arguments.device, 2)
    failures = []
    if weights_one != weights_two or one != two:
        failures.append("weights or losses at 1 and 2 stages on %s differ" % arguments.device)
    worst = max(abs(a - b) / abs(a) for a, b in zip(cpu, one))
    print("largest relative difference of a loss, CPU to %s: %.2e" % (arguments.device, worst))
    if worst > 1e-2:
        failures.append("losses on %s leave the CPU's by more than 1e-2" % arguments.device)
    for failure in failures:
        print("FAILED: " + failure)
    if not failures:
        print("PASSED: bit-equal at 1 and 2 stages, losses as on the CPU")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
