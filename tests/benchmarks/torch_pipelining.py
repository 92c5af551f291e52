#!/usr/bin/env python3
"""Two stages here and in torch.distributed.pipelining: the same model, batches and schedule, on the same machine.

  bazel build //coordinator/cli:resbm //stage_server
  ~/.cache/resbm/venv/bin/python tests/benchmarks/torch_pipelining.py [--steps 6] [--rounds 3]
  sudo ~/.cache/resbm/venv/bin/python tests/benchmarks/torch_pipelining.py --rate 20mbit [--steps 6] [--rounds 2]

One residual block of 64 channels at 28x28 a stage, 16 micro-batches of 16, 1F1B, SGD, fp32 arithmetic, one thread a
stage. torch: two processes over Gloo, whose tensors cross as fp32. resbm: two stage servers over gRPC and the
coordinator, fp16 on the wire; resbm-windows: the same with more micro-batches under way. Uncompressed and with a ResBM
of r = 16, which in torch is the twin of tests/parity written into the two stage modules. Arms take turns, so that a machine that slows down slows all of them. With --rate
the second stage is in a network namespace of its own (root), behind a pair of interfaces of that rate each way; without
it all of it is loopback. Samples/s of the median step, the first two steps of each run left out.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = "/usr/share/datasets/fashion-mnist"
SAMPLES, MICRO_BATCHES, CHANNELS = 256, 16, 64

JOB = """
name: "against-torch"
model { resnet {
  input { channels: 1 height: 28 width: 28 }
  stem { channels: 64 }
  group { blocks: 2 channels: 64 }
} }
boundary { kind: %s ratio: 16 }
cut_point { after: "group0.0" }
batch { samples: 256 micro_batches: 16 }
optimizer { sgd { learning_rate: 0.01 momentum: 0.9 } }
data { fashion_mnist {} limit_train: 2560 }
run { steps: %d threads_per_stage: 1 evaluate: false signals: false }
"""

# And what is added to the job. 1F1B's own windows are [2, 1].
ARMS = {"torch": "", "resbm": "", "resbm-windows": "schedule { windows: [8, 1] }\n"}


# One rank of torch.distributed.pipelining; writes the seconds of its steps.
def torch_rank(rank, kind, steps, address, out):
    import gzip

    import numpy
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    sys.path.insert(0, str(ROOT / "tests" / "parity"))
    import twin

    torch.set_num_threads(1)
    torch.manual_seed(1)
    host, port = address.rsplit(":", 1)
    dist.init_process_group("gloo", init_method=f"tcp://{host}:{port}", rank=rank, world_size=2)
    boundary = twin.ResBMBlock(CHANNELS, 16, 4) if kind == "RESBM" else None

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.normalise = twin.Normalise([0.2860], [0.3530])
            self.stem = twin.Stem(1, CHANNELS, 1, 8)
            self.block = twin.Block(CHANNELS, CHANNELS, 1, 8)
            self.boundary = boundary

        def forward(self, images):
            x = self.block(self.stem(self.normalise(images)))
            return self.boundary.encode(x) if self.boundary else x

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.boundary = boundary
            self.block = twin.Block(CHANNELS, CHANNELS, 1, 8)
            self.pool, self.head = twin.GlobalPool(), torch.nn.Linear(CHANNELS, 10)

        def forward(self, crossed):
            return self.head(self.pool(self.block(self.boundary.decode(crossed) if self.boundary else crossed)))

    module = First() if rank == 0 else Last()
    stage = PipelineStage(module, rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, MICRO_BATCHES, loss_fn=torch.nn.functional.cross_entropy)
    # Each rank holds half of the boundary; the other half's parameters get no gradient and take no step.
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)

    def idx(name, header, shape):
        with gzip.open(f"{IMAGES}/{name}.gz") as file:
            return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=header).reshape(shape).copy())

    images, labels = idx("train-images-idx3-ubyte", 16, (-1, 1, 28, 28)), idx("train-labels-idx1-ubyte", 8, -1).long()
    seconds = []
    for step in range(steps):
        batch = slice(step % 10 * SAMPLES, (step % 10 + 1) * SAMPLES)
        dist.barrier()
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        if rank == 0:
            schedule.step(images[batch])
        else:
            schedule.step(target=labels[batch])
        optimizer.step()
        dist.barrier()  # a step is taken by both, as in resbm
        seconds.append(time.monotonic() - start)
    if rank == 0:
        pathlib.Path(out).write_text(json.dumps(seconds))
    dist.destroy_process_group()


class Machines:
    """Where the two stages run: prefixes of their commands, and the addresses under which they are reached."""

    def __init__(self, rate):
        self.rate, self.prefix, self.hosts = rate, [[], []], ["127.0.0.1", "127.0.0.1"]
        self.interface = "lo"
        if not rate:
            return
        names = [f"bench{os.getpid()}{c}" for c in "ab"]
        self.names, self.hosts, self.interface = names, ["10.77.0.1", "10.77.0.2"], "link0"
        for name in names:
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
        self.ip("-n", names[0], "link", "add", "link0", "type", "veth", "peer", "name", "link0", "netns", names[1])
        for name, host in zip(names, self.hosts):
            self.ip("-n", name, "addr", "add", host + "/24", "dev", "link0")
            self.ip("-n", name, "link", "set", "link0", "up")
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "link0", "root", "tbf", "rate", rate, "burst", "32kb",
                            "latency", "200ms"], check=True)
        self.prefix = [["ip", "netns", "exec", name] for name in names]

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def close(self):
        for name in self.names if self.rate else []:
            self.ip("netns", "del", name)


def run_torch(machines, kind, steps, folder):
    out = f"{folder}/seconds"
    port = 29500
    environment = dict(os.environ, GLOO_SOCKET_IFNAME=machines.interface, OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen(machines.prefix[rank] + [sys.executable, __file__, "--rank", str(rank), "--kind", kind, "--steps",
                              str(steps), "--address", f"{machines.hosts[0]}:{port}", "--out", out], env=environment)
             for rank in range(2)]
    codes = [rank.wait() for rank in ranks]
    if any(codes):
        sys.exit("torch's ranks failed")
    return [SAMPLES / s for s in json.loads(pathlib.Path(out).read_text())[2:]]


def run_resbm(machines, kind, steps, folder, binaries, windows):
    job, servers, addresses = f"{folder}/job.textproto", [], []
    pathlib.Path(job).write_text(JOB % (kind, steps) + windows)
    try:
        for prefix, host in zip(machines.prefix, machines.hosts):
            insecure = [] if host.startswith("127.") else ["--insecure"]
            servers.append(subprocess.Popen(prefix + [binaries[1], "--listen", host + ":0", "--device", "cpu"] + insecure,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
            addresses.append(servers[-1].stdout.readline().split()[1])
        subprocess.run(machines.prefix[0] + [binaries[0], "train", "--job", job, "--stages", ",".join(addresses), "--run-dir",
                                             f"{folder}/run", "-q", "--json"], check=True, stdout=subprocess.DEVNULL)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    rows = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
    return [row["samples"] / row["step_seconds"] for row in rows[2:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resbm", default=str(ROOT / "bazel-bin/coordinator/cli/resbm"))
    parser.add_argument("--stage-server", default=str(ROOT / "bazel-bin/stage_server/stage_server"))
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", help="of the link between the stages, as tc writes it, e.g. 20mbit; needs root")
    parser.add_argument("--arms", default=",".join(ARMS), help="some of: %(default)s")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        return torch_rank(arguments.rank, arguments.kind, arguments.steps, arguments.address, arguments.out)

    rates = {}
    machines = Machines(arguments.rate)
    try:
        for _ in range(arguments.rounds):
            for kind in ("IDENTITY", "RESBM"):
                for name in arguments.arms.split(","):
                    with tempfile.TemporaryDirectory() as folder:
                        run = (run_torch(machines, kind, arguments.steps, folder) if name == "torch" else
                               run_resbm(machines, kind, arguments.steps, folder, (arguments.resbm, arguments.stage_server),
                                         ARMS[name]))
                    rates.setdefault((name, kind), []).append(statistics.median(run))
    finally:
        machines.close()
    values = {"IDENTITY": CHANNELS * 28 * 28, "RESBM": CHANNELS // 16 * 28 * 28}
    print("| system | boundary | payload a sample, each way | samples/s, each round | median |\n|---|---|---|---|---|")
    for (name, kind), each in rates.items():
        payload = values[kind] * (4 if name == "torch" else 2)
        print(f"| {name} | {kind} | {payload:,} bytes | {', '.join(f'{x:.1f}' for x in each)} | "
              f"{statistics.median(each):.1f} |")


if __name__ == "__main__":
    main()
