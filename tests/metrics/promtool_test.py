"""What Prometheus' own promtool says of our metrics, alert rules, settings and dashboard.

Usage: promtool_test.py RESBM STAGE_SERVER, beside deploy/ and docs/
promtool comes from deploy/setup.sh (or from $PATH).
"""

import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import yaml

RESBM, STAGE_SERVER = sys.argv[1:3]
del sys.argv[1:3]

DEPLOY = pathlib.Path("deploy").resolve()
CACHE = os.environ.get("XDG_CACHE_HOME") or pwd.getpwuid(os.getuid()).pw_dir + "/.cache"
PROMTOOL = shutil.which("promtool") or CACHE + "/resbm/promtool/usr/bin/promtool"

JOB = """
name: "small" seed: 3
model {
  resnet {
    input { channels: 1 height: 28 width: 28 }
    stem { channels: 8 stride: 2 }
    group { blocks: 2 channels: 8 }
  }
}
boundary { ratio: 4 }
cut_point { after: "group0.0" }
batch { samples: 4 micro_batches: 2 }
optimizer { sgd {} }
run { steps: 1000000 evaluate: false }
data { mnist { directory: "%s" } }
"""


def promtool(*arguments, text=None):
    return subprocess.run([PROMTOOL, *arguments], input=text, capture_output=True, text=True)


def scrape(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as reply:
        return reply.read().decode()


def documented():
    """Names of docs/metrics.md, with the series that a histogram has."""
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", pathlib.Path("docs/metrics.md").read_text(), re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def expressions():
    """(where, PromQL) of the alert rules and of the dashboard."""
    for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads((DEPLOY / "grafana/resbm.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


class Promtool(unittest.TestCase):
    def accepts(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def test_it_is_here(self):
        self.assertTrue(os.access(PROMTOOL, os.X_OK), f"no {PROMTOOL}: run deploy/setup.sh, which puts it there")

    def test_it_accepts_the_metrics_of_both_programs_in_the_middle_of_training(self):
        with tempfile.TemporaryDirectory() as folder:
            write_images(pathlib.Path(folder))
            pathlib.Path(folder, "job.textproto").write_text(JOB % folder)
            servers, stages, pages = [], [], []
            for _ in range(2):
                server = subprocess.Popen([STAGE_SERVER, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"],
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.addCleanup(server.stdout.close)
                self.addCleanup(server.kill)
                servers.append(server)
                stages.append(server.stdout.readline().split()[1])
                pages.append(server.stdout.readline().split()[1])
            train = subprocess.Popen([RESBM, "train", "--job", folder + "/job.textproto", "--stages", ",".join(stages),
                                      "--run-dir", folder + "/run", "--metrics-listen", "127.0.0.1:0"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(train.stderr.close)
            self.addCleanup(train.kill)
            log = ""
            for line in train.stderr:
                log += line
                if line.startswith("step "):
                    break
            found = re.search(r"metrics: http://(\S+)/metrics", log)
            self.assertTrue(found, log)
            seen = set()
            for address in [found[1], *pages]:
                text = scrape(address)
                self.accepts(promtool("check", "metrics", text=text))
                seen |= set(re.findall(r"^(\w+)", text, re.M)) - {"HELP", "TYPE"}
            self.assertIn("resbm_train_loss", seen)
            self.assertIn("resbm_stage_link_payload_bytes_total", seen)
            self.assertLessEqual({n for n in seen if not n.startswith("exposer_")}, documented())
            train.kill()
            train.wait()

    def test_it_refuses_what_is_wrong(self):
        wrong = "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\na_bytes 1\n"
        self.assertNotEqual(promtool("check", "metrics", text=wrong).returncode, 0)

    def test_it_accepts_the_settings_and_the_alert_rules_and_these_fire_when_they_should(self):
        self.accepts(promtool("check", "config", str(DEPLOY / "prometheus/prometheus.yml")))
        self.accepts(promtool("check", "rules", str(DEPLOY / "prometheus/alerts.yml")))
        self.accepts(promtool("test", "rules", str(DEPLOY / "prometheus/alerts_test.yml")))

    def test_alerts_and_dashboard_ask_for_metrics_that_exist(self):
        names = documented() | {"up"}
        asked = set()
        for where, expression in expressions():
            used = set(re.findall(r"\b(?:resbm|process)_\w+|\bup\b(?=\{)", expression))
            self.assertTrue(used, where)
            self.assertLessEqual(used, names, where)
            asked |= used
        self.assertGreater(len(asked), 25)

    def test_it_can_read_every_query(self):
        rules = [{"record": f"a:query{i}", "expr": expression} for i, (_, expression) in enumerate(expressions())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}, file)
            file.flush()
            self.accepts(promtool("check", "rules", file.name))

    def test_every_alert_has_a_test(self):
        tested = set(re.findall(r"alertname: (\w+)", (DEPLOY / "prometheus/alerts_test.yml").read_text()))
        groups = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
        self.assertEqual(tested, {rule["alert"] for group in groups for rule in group["rules"]})


def write_images(folder):
    """MNIST's files with a few grey images."""
    for name, count in (("train", 8), ("t10k", 4)):
        images = b"".join(bytes([i * 7 % 256]) * 784 for i in range(count))
        header = b"".join(n.to_bytes(4, "big") for n in (2051, count, 28, 28))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + images)
        header = b"".join(n.to_bytes(4, "big") for n in (2049, count))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(header + bytes(i % 10 for i in range(count)))


if __name__ == "__main__":
    unittest.main()
