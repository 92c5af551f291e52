#!/usr/bin/env python3
"""Follows docs/deployment.md over four network namespaces as four machines, as root.

  python3 deploy/namespaces_test.py [--rate 10mbit]

Runs the commands of the page's blocks that begin with `# on MACHINE`, to the letter: each machine has a network of its
own (joined by a bridge), its own names of the others, firewall and working directory. Then tries what the page says
about ends, failures and bytes. --rate slows every machine's network card down (tc tbf). The package is DIST, or built.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "deployment.md"
MACHINES = {"desk": "10.77.0.1", "gpu-a": "10.77.0.2", "gpu-b": "10.77.0.3", "gpu-c": "10.77.0.4"}
LAN = {"gpu-b": "10.78.0.1", "gpu-c": "10.78.0.2"}  # their link of their own
RESBM = "/opt/resbm/bin/resbm"
SMALL = ("--set 'cut_point[1].after=group1.0' --set run.steps=20 --set data.limit_train=1920 --set data.limit_test=500")
STAGES = "gpu-a:50051,gpu-b:50051,gpu-c:50051"


def say(text):
    print("namespaces_test:", text, flush=True)


def check(condition, text):
    if not condition:
        sys.exit(f"namespaces_test: FAILED: {text}")


def blocks():
    """(machines, commands) of the page, in its order."""
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        for names, commands in re.findall(r"^# on (.*)\n((?:(?!# on ).*\n)*)", block, re.M):
            yield names.split(", "), commands


def namespace(machine):
    return "resbm-test-" + machine


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Network:
    """The machines' namespaces, and one more for the bridge that joins them. Nothing of the host's network changes."""

    def __init__(self, rate):
        switch = namespace("switch")
        self.close()
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for machine, address in MACHINES.items():
            name = namespace(machine)
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", machine, "netns", switch)
            ip("-n", switch, "link", "set", machine, "master", "bridge", "up")
            ip("-n", name, "addr", "add", address + "/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            names = {**MACHINES, machine: "127.0.1.1"}
            if machine == "gpu-b":
                names["gpu-c.lan"] = LAN["gpu-c"]
            folder = pathlib.Path("/etc/netns", name)
            folder.mkdir(parents=True)
            (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in names.items()))
            if rate:
                subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate,
                                "burst", "32kb", "latency", "400ms"], check=True)
        ip("-n", namespace("gpu-b"), "link", "add", "lan", "type", "veth", "peer", "name", "lan", "netns",
           namespace("gpu-c"))
        for machine, address in LAN.items():
            ip("-n", namespace(machine), "addr", "add", address + "/24", "dev", "lan")
            ip("-n", namespace(machine), "link", "set", "lan", "up")

    def close(self):
        for machine in ["switch", *MACHINES]:
            name = namespace(machine)
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
            shutil.rmtree(pathlib.Path("/etc/netns", name), ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir("/etc/netns")


class Machines:
    def __init__(self, work):
        self.work = work
        self.servers = {}  # (machine, port) -> process
        self.processes = []
        (work / "opt").mkdir()
        for machine in MACHINES:
            (work / machine).mkdir()

    def start(self, machine, commands, **more):
        # The machines share a disk for /opt; only desk has data.
        prepare = f"mount --bind {self.work}/opt /opt; "
        if machine != "desk":
            prepare += "mount -t tmpfs none /usr/share/datasets; "
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace(machine), "unshare", "--mount", "bash", "-euo", "pipefail", "-c",
             prepare + commands],
            cwd=self.work / machine, start_new_session=True, stdin=subprocess.DEVNULL, text=True, **more)
        self.processes.append(process)
        return process

    def run(self, machine, commands, code=0):
        """Its output; both streams."""
        process = self.start(machine, commands, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, _ = process.communicate(timeout=900)
        check(process.returncode == code, f"on {machine}, exit code {process.returncode}:\n{commands}\n{output}")
        return output

    def serve(self, machine, commands):
        log = self.work / machine / "stage_server.log"
        with open(log, "a") as file:
            process = self.start(machine, commands, stdout=subprocess.PIPE, stderr=file)
        line = process.stdout.readline()
        check(line.startswith("LISTENING 0.0.0.0:"), f"on {machine}: {commands}: {line}{log.read_text()}")
        self.servers[machine, int(line.rpartition(":")[2])] = process, commands

    def stop(self, server, how):
        process, _ = self.servers.pop(server)
        os.killpg(process.pid, how)
        return process.wait(60)

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def summary(run):
    return json.loads((run / "summary.json").read_text())


class Training:
    """A long run on desk that is being watched."""

    def __init__(self, machines, name, stages=STAGES, steps=100000):
        self.run = machines.work / "desk" / "runs" / name
        self.log = machines.work / "desk" / (name + ".log")
        with open(self.log, "w") as file:
            self.process = machines.start(
                "desk", f"exec {RESBM} train --job /opt/resbm/jobs/fashion_mnist.textproto --stages {stages} {SMALL} "
                f"--set run.steps={steps} --run-dir runs/{name}", stdout=file, stderr=file)
        self.wait_for("step ")

    def wait_for(self, text):
        deadline = time.monotonic() + 120
        while text not in self.log.read_text():
            check(time.monotonic() < deadline and self.process.poll() is None, f"no '{text}':\n{self.log.read_text()}")
            time.sleep(0.1)

    def end(self, code):
        self.process.wait(180)
        log = self.log.read_text()
        check(self.process.returncode == code, f"exit code {self.process.returncode}, not {code}:\n{log}")
        return log


def follow_the_page(machines):
    shutil.copy(package(), machines.work / "gpu-a" / "resbm.tar.gz")
    # What the page copies by scp; the machines share the disk.
    shutil.copytree("/usr/share/datasets/fashion-mnist", machines.work / "opt" / "fashion-mnist")
    followed = 0
    for names, commands in blocks():
        for name in names:
            check(name in MACHINES, f"the page has a machine {name}")
        if "tar xzf" in commands:
            names = ["gpu-a"]  # the machines share a disk
        for name in names:
            say(f"on {name}: " + " ".join(commands.split())[:90])
            if "/bin/stage_server " in commands:
                machines.serve(name, "exec " + commands.lstrip())
            else:
                output = machines.run(name, commands)
                if "/bin/health_probe" in commands:
                    check(output == "", f"health: {output}")
                if "/bin/resbm status" in commands:
                    check(output.count(" free ") == 3 and "the run has ended" in output, f"status: {output}")
        followed += 1
    check(followed == 10, f"the page has {followed} blocks for machines; this test knows 10")


def close_the_firewalls(machines):
    """As on gpu-b: only those dial that the page says. Before anything is trained."""
    allow = "iptables -A INPUT -p tcp --dport 50051 -s {} -j ACCEPT; "
    drop = "iptables -A INPUT -p tcp -m conntrack --ctstate NEW -i eth0 -j DROP"
    machines.run("desk", drop)
    third = allow.replace("50051", "50053")
    machines.run("gpu-a", allow.format("desk") + third.format("desk") + drop)
    second = allow.replace("50051", "50052").format("desk")  # gpu-b comes over their own link
    machines.run("gpu-c", allow.format("desk") + allow.format("gpu-b") + second + third.format("desk") +
                 third.format("gpu-b") + drop)


def check_results(machines, network_bytes):
    runs = machines.work / "desk" / "runs"
    say("one stage on desk, to compare")
    machines.run("desk", f"{RESBM} train --job /opt/resbm/jobs/fashion_mnist.textproto --local-stages 1 {SMALL} "
                 "--run-dir runs/one")
    weights = (runs / "one" / "model.safetensors").read_bytes()
    for name in ("first", "second", "third"):
        result = summary(runs / name)
        check(len(result["stages"]) == 3 and result["steps"] == 20, result)
        check(0 <= result["top1"] <= 1, result)
        check(all(s["forward_seconds"] > 0 and s["backward_seconds"] > 0 for s in result["stages"]), result)
        cuts = {(b["cut_point"], b["direction"]) for b in result["boundaries"]}
        check(cuts == {(c, d) for c in ("group0.1", "group1.0") for d in ("activations", "gradients")}, cuts)
        for boundary in result["boundaries"]:
            check(boundary["payload_bytes"] * 16 == boundary["uncompressed_bytes"]["fp16"], boundary)
        check((runs / name / "model.safetensors").read_bytes() == weights, f"the weights of runs/{name} are others")
        say(f"runs/{name}: {result['samples_per_second']:.0f} samples/s, "
            f"{100 * result['communication_share_exposed']:.0f} % waiting for links, weights equal in every bit")
    # What crossed the second cut in 20 steps went over gpu-b's link of its own: activations, forward.
    crossed = 20 * next(b["payload_bytes"] for b in summary(runs / "second")["boundaries"]
                        if b["cut_point"] == "group1.0" and b["direction"] == "activations")
    check(network_bytes() > crossed, f"{network_bytes()} bytes over gpu-c.lan, expected over {crossed}")


def try_failures(machines):
    weights = (machines.work / "desk" / "runs" / "first" / "model.safetensors").read_bytes()

    say("Ctrl-C: the step is finished, the weights are saved")
    training = Training(machines, "interrupted")
    os.killpg(training.process.pid, signal.SIGINT)
    training.end(130)
    check((training.run / "model.safetensors").stat().st_size > 0, "no weights after Ctrl-C")

    say("a connection between two stages breaks: the run goes on, to the same weights")
    training = Training(machines, "broken", steps=20)
    reject = "-p tcp --dport 50051 -s gpu-a -j REJECT --reject-with tcp-reset"
    machines.run("gpu-b", f"iptables -I INPUT 1 {reject}; sleep 1; iptables -D INPUT {reject}")
    training.end(0)
    log = (machines.work / "gpu-a" / "stage_server.log").read_text()
    check("link_disconnected" in log, "the connection did not break:\n" + log)
    check((training.run / "model.safetensors").read_bytes() == weights, "a broken connection changed the weights")

    say("a stage dies: exit code 3, it is named, the others are free")
    _, commands = machines.servers["gpu-b", 50051]
    training = Training(machines, "lost")
    machines.stop(("gpu-b", 50051), signal.SIGKILL)
    check("stage 1 was lost" in training.end(3), training.log.read_text())
    check((training.run / "metrics.jsonl").stat().st_size > 0, "no figures of the steps so far")
    machines.serve("gpu-b", commands)

    say("a machine leaves the network: exit code 3, once keepalive has noticed")
    training = Training(machines, "gone")
    ip("-n", namespace("gpu-b"), "link", "set", "eth0", "down")
    start = time.monotonic()
    status = ""
    while "from stage 1" not in status:  # the neighbours go on for as long as they have work
        check(time.monotonic() < start + 20, "who is waited for is not said:\n" + status)
        status = machines.run("desk", f"{RESBM} status runs/gone --timeout 2", code=3)
    check("does not answer in time" in status or "cannot be reached" in status, status)
    check("stage 1" in training.end(3), training.log.read_text())
    say(f"noticed after {time.monotonic() - start:.0f} s")
    ip("-n", namespace("gpu-b"), "link", "set", "eth0", "up")
    machines.stop(("gpu-b", 50051), signal.SIGTERM)  # it still keeps the run that it lost
    machines.serve("gpu-b", commands)

    say("the coordinator dies: the stage servers keep its run; another is refused; a restart frees them")
    training = Training(machines, "dead")
    os.killpg(training.process.pid, signal.SIGKILL)
    training.process.wait()
    train = f"{RESBM} train --job /opt/resbm/jobs/fashion_mnist.textproto --stages {STAGES} {SMALL} --run-dir runs/"
    refused = machines.run("desk", train + "refused", code=3)
    check("fashion-mnist-r16-" in refused, "who holds the stages is not said: " + refused)
    for server, (_, commands) in list(machines.servers.items()):
        check(machines.stop(server, signal.SIGTERM) == 0, f"{server} did not end well")
        machines.serve(server[0], commands)
    machines.run("desk", train + "after")
    check((machines.work / "desk" / "runs" / "after" / "model.safetensors").read_bytes() == weights, "weights differ")

    say("a stage server that cannot be reached, and a port that is taken")
    output = machines.run("desk", train.replace("gpu-b:50051", "gpu-b:50099") +
                          "unreachable --set timeouts.connect_seconds=2", code=3)
    check("gpu-b:50099" in output, output)
    check(not (machines.work / "desk" / "runs" / "unreachable").exists(), "a run directory is left behind")
    machines.run("gpu-a", "/opt/resbm/bin/stage_server --listen 0.0.0.0:50051 --insecure", code=2)


def package():
    if os.environ.get("DIST"):
        return os.environ["DIST"]
    subprocess.run(["bazel", "build", "//deploy:dist"], check=True, cwd=ROOT)
    output = subprocess.run(["bazel", "info", "bazel-bin"], check=True, cwd=ROOT, capture_output=True, text=True).stdout
    return pathlib.Path(output.strip(), "deploy", "resbm.tar.gz")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", help="of each machine's network card, as tc writes it, e.g. 10mbit")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("namespaces_test: run me as root")
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="resbm-namespaces-")))
        network = Network(options.rate)
        stack.callback(network.close)
        machines = Machines(work)
        stack.callback(machines.close)
        close_the_firewalls(machines)

        def lan_bytes():
            text = subprocess.run(["ip", "-n", namespace("gpu-b"), "-s", "-j", "link", "show", "lan"], check=True,
                                  capture_output=True, text=True).stdout
            return json.loads(text)[0]["stats64"]["tx"]["bytes"]

        follow_the_page(machines)
        check_results(machines, lan_bytes)
        try_failures(machines)
    print("namespaces_test: PASSED")


if __name__ == "__main__":
    main()
