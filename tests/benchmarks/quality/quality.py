#!/usr/bin/env python3
"""Accuracy against bytes, arm by arm: the tables of docs/benchmarks/quality.md.

  bazel build //coordinator/cli:resbm //stage_server
  python3 tests/benchmarks/quality/quality.py images --out runs/quality-images      # hours on two cores
  python3 tests/benchmarks/quality/quality.py text --out runs/quality-text
  python3 tests/benchmarks/quality/quality.py images --out runs/quality-images --report-only

For each arm: a learning-rate search (one seed, a short run each, the best validation loss wins), then the best
rate with every seed. All arms have the same model, data and schedule, and the optimizer of the arm they are
measured against. By the first law accuracy does not depend on the number of stages, so everything runs unsplit,
--jobs runs at a time with one thread each.

Every run is a run directory under --out and is not run again when its summary is there: an interrupted
benchmark goes on where it stopped. Seeds are trained in rounds over the arms, so that the report is balanced
at any time.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# name, fields
IMAGE_ARMS = [
    ("identity", ["boundary.kind=IDENTITY"]),
    ("identity + block", ["boundary.kind=IDENTITY_BLOCK"]),
    ("r=16", ["boundary.ratio=16"]),
    ("linear r=16", ["boundary.kind=LINEAR", "boundary.ratio=16"]),
    ("r=4", ["boundary.ratio=4"]),
    ("r=8", ["boundary.ratio=8"]),
    ("r=32", ["boundary.ratio=32"]),
    ("r=64", ["boundary.ratio=64"]),
]

TEXT_RATIOS = [4, 16, 64, 128]
# The optimizer is the arm's; the uncompressed model is trained by both.
TEXT_OPTIMIZERS = {
    "AdamW": ("optimizer.adamw.learning_rate", ["0.001", "0.002", "0.004"], []),
    "Muon": ("optimizer.muon.learning_rate", ["0.02", "0.04", "0.08"],
             ["optimizer={muon { adamw { learning_rate: 0.002 } } clip_norm: 1 schedule { one_cycle { rise: 0.1 } }}"]),
}
TEXT_ARMS = []
for _optimizer, (_field, _rates, _set) in TEXT_OPTIMIZERS.items():
    TEXT_ARMS.append(("%s identity" % _optimizer, _set + ["boundary.kind=IDENTITY"]))
    TEXT_ARMS += [("%s in-branch %dx" % (_optimizer, r), _set + ["boundary.ratio=%d" % r]) for r in TEXT_RATIOS]
    TEXT_ARMS.append(("%s in-branch 16x orthogonal" % _optimizer, _set + ["boundary.projection=ORTHOGONAL"]))
TEXT_ARMS.append(("Muon in-branch 16x orthogonal after block0", TEXT_OPTIMIZERS["Muon"][2] + [
    "boundary.projection=ORTHOGONAL", "cut_point[0].after=block0"]))
INT8 = ["wire.activations=INT8", "wire.gradients=INT8"]
TEXT_ARMS.append(("AdamW in-branch 8x int8", ["boundary.ratio=8"] + INT8))  # about the bytes of 16x
TEXT_ARMS.append(("AdamW adapter 16x", ["boundary.kind=ADAPTER"]))
TEXT_ARMS.append(("AdamW linear 16x", ["boundary.kind=LINEAR"]))

SUITES = {
    "images": {
        "job": "images.textproto",
        "arms": IMAGE_ARMS,
        # Prefix of an arm's name: the field of its rate, and the rates to try.
        "rates": {"": ("optimizer.adamw.learning_rate", ["0.003", "0.01", "0.03"])},
        "search": ["run.epochs=1"],
        "baselines": {"": "identity"},
        "metric": "top1",
    },
    "text": {
        "job": "text.textproto",
        "arms": TEXT_ARMS,
        "rates": {name: (field, rates) for name, (field, rates, _) in TEXT_OPTIMIZERS.items()},
        "search": ["run.steps=200"],
        "baselines": {name: "%s identity" % name for name in TEXT_OPTIMIZERS},
        "metric": "validation_loss",
    },
}


def slug(text):
    return "".join(c if c.isalnum() else "-" for c in text).strip("-").replace("---", "-")


class Benchmark:
    def __init__(self, arguments):
        self.arguments = arguments
        self.suite = SUITES[arguments.suite]
        wanted = arguments.arms.split(",") if arguments.arms else None
        self.arms = [a for a in self.suite["arms"] if wanted is None or a[0] in wanted]

    def folder(self, *parts):
        return os.path.join(self.arguments.out, *[slug(p) for p in parts])

    @staticmethod
    def read(folder):
        """The summary of a run that ended; None if there is none."""
        summary = os.path.join(folder, "summary.json")
        if not os.path.exists(summary):
            return None
        with open(summary) as f:
            return json.load(f)

    def run(self, folder, fields, own):
        """Trains once, if it has not ended yet, with the fields of the arm, of every run and its own."""
        if self.read(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            job = os.path.join(HERE, self.suite["job"])
            command = [self.arguments.resbm, "train", "--job", job, "--run-dir", folder, "--local-stages", "1", "-q"]
            for field in fields + self.arguments.set + own:
                command += ["--set", field]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                print("%s: exit code %d: %s" % (folder, done.returncode, done.stderr[-500:]), file=sys.stderr)
                # What ended early has a summary too, but counts for nothing.
                shutil.rmtree(folder, ignore_errors=True)
                return
            print("done:", folder, flush=True)

    @staticmethod
    def of_prefix(table, name):
        return max((prefix, value) for prefix, value in table.items() if name.startswith(prefix))[1]

    def rates(self, name):
        return self.of_prefix(self.suite["rates"], name)[1]

    def rate_field(self, name):
        return self.of_prefix(self.suite["rates"], name)[0]

    def search_folder(self, arm, rate):
        return self.folder("search", arm[0], rate)

    def best_rate(self, arm):
        """None until every rate was tried, or if none of them gave a loss."""
        tried = {rate: self.read(self.search_folder(arm, rate)) for rate in self.rates(arm[0])}
        if None in tried.values():
            return None
        # One that diverged has no loss.
        losses = [(s["validation_loss"], rate) for rate, s in tried.items() if has_loss(s)]
        return min(losses)[1] if losses else None

    def seed_folder(self, arm, rate, seed):
        # With the rate: another search may choose another one.
        return self.folder("seeds", arm[0], rate, "seed%d" % seed)

    def search(self, arm, rate):
        self.run(self.search_folder(arm, rate), arm[1],
                 self.suite["search"] + self.arguments.search_set + ["%s=%s" % (self.rate_field(arm[0]), rate)])

    def train_seed(self, arm, seed):
        rate = self.best_rate(arm)
        if rate is not None:
            self.run(self.seed_folder(arm, rate, seed), arm[1],
                     ["%s=%s" % (self.rate_field(arm[0]), rate), "seed=%d" % seed])

    def train(self):
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            list(pool.map(lambda job: self.search(*job), [(a, r) for a in self.arms for r in self.rates(a[0])]))
            list(pool.map(lambda job: self.train_seed(*job),
                          [(a, s) for s in range(1, self.arguments.seeds + 1) for a in self.arms]))

    def report_search(self):
        top1 = self.suite["metric"] == "top1"
        print("| arm | search: rate: %s |" % ("top-1 % (validation loss)" if top1 else "validation loss"))
        print("|---|---|")
        for arm in self.arms:
            best = self.best_rate(arm)
            cells = []
            for rate in self.rates(arm[0]):
                summary = self.read(self.search_folder(arm, rate))
                if summary is None:
                    text = "-"
                elif not has_loss(summary):
                    text = "not finite"
                elif top1:
                    text = "%.2f (%.4f)" % (100 * summary["top1"], summary["validation_loss"])
                else:
                    text = "%.4f" % summary["validation_loss"]
                cells.append("%s: %s" % (rate, "**%s**" % text if rate == best else text))
            print("| %s | %s |" % (arm[0], ", ".join(cells)))

    def report(self):
        seeds = range(1, self.arguments.seeds + 1)
        rates = {arm[0]: self.best_rate(arm) for arm in self.arms}
        rows = {arm[0]: [rates[arm[0]] and self.read(self.seed_folder(arm, rates[arm[0]], s)) for s in seeds]
                for arm in self.arms}
        top1 = self.suite["metric"] == "top1"
        against = self.arguments.baseline or ("identity" if top1 else "identity with the same optimizer")
        print("| arm | rate | seeds | top-1 % | " + ("points" if top1 else "% of the loss") +
              " against %s | validation loss | parameters | bytes a sample |" % against)
        print("|---|---|---|---|---|---|---|---|")
        for arm in self.arms:
            name = arm[0]
            baseline = self.arguments.baseline or self.of_prefix(self.suite["baselines"], name)
            ended = [s for s in rows[name] if s is not None]
            summaries = [s for s in ended if has_loss(s)]
            diverged = " (%d diverged)" % (len(ended) - len(summaries)) if len(ended) > len(summaries) else ""
            if not summaries:
                print("| %s | %s | 0%s | | | | | |" % (name, rates[name] or "not searched", diverged))
                continue
            # Seed by seed: the same order of samples in both.
            pairs = [(s, b) for s, b in zip(rows[name], rows.get(baseline, []))
                     if s and b and has_loss(s) and has_loss(b)]
            if top1:
                lost = [100 * (s["top1"] - b["top1"]) for s, b in pairs]
            else:
                lost = [100 * (s["validation_loss"] / b["validation_loss"] - 1) for s, b in pairs]
            print("| %s | %s | %d%s | %s | %s | %s | %d | %d |" % (
                name, rates[name], len(summaries), diverged, spread([100 * s["top1"] for s in summaries], 2),
                "" if name == baseline else spread(lost, 2, sign=True),
                spread([s["validation_loss"] for s in summaries], 4),
                sum(s["parameters"] for s in summaries[0]["stages"]), self.planned_bytes(arm)))

    def planned_bytes(self, arm):
        """At the cut point, both directions, as the job plans them."""
        run = self.search_folder(arm, self.rates(arm[0])[0])
        done = subprocess.run([self.arguments.resbm, "compare", "--json", run], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        arms = json.loads(done.stdout)["arms"]
        return arms[0]["figures"]["planned_bytes_per_sample"]["mean"]


def has_loss(summary):
    return summary["validation_loss"] is not None


def spread(values, digits, sign=False):
    if not values:
        return ""
    form = "%%%s.%df" % ("+" if sign else "", digits)
    text = form % statistics.mean(values)
    return text + (" +- %.*f" % (digits, statistics.stdev(values)) if len(values) > 1 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--out", required=True, help="folder of the run directories")
    parser.add_argument("--resbm", default="bazel-bin/coordinator/cli/resbm")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", help="only these, by comma")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="for every run")
    parser.add_argument("--search-set", action="append", default=[], metavar="FIELD=VALUE",
                        help="for the runs of the rate search, over what they have")
    parser.add_argument("--baseline", metavar="ARM", help="report differences to this one")
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments)
    if not arguments.report_only:
        benchmark.train()
    benchmark.report_search()
    print()
    benchmark.report()


if __name__ == "__main__":
    main()
