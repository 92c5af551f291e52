"""What all commands have in common, with the programs as users run them: output streams, --json, -q, colours, exit codes.

Usage: every_command_test.py RESBM STAGE_SERVER
"""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

RESBM, STAGE_SERVER = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]

JOB = """
name: "tiny"
model { transformer { layers: 2 width: 32 heads: 2 context: 16 } }
boundary { kind: ADAPTER ratio: 4 }
cut_point { after: "block0" }
batch { samples: 8 micro_batches: 2 }
optimizer { sgd { learning_rate: 0.1 } }
data { text { file: "text.txt" } }
run { steps: 2 }
"""
LOCAL = ["--stage-server", STAGE_SERVER, "--device", "cpu"]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class EveryCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "job.textproto").write_text(JOB)
        (cls.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 60)
        for name in ("one", "two"):
            cls.run_ok(cls, "train", "--job", "job.textproto", *LOCAL, "--run-dir", name, "-q")
        # Each command with what makes it end well, quickly. {} is a new name for each call.
        cls.calls = {
            "init": ["init", "{}.textproto"],
            "train": ["train", "--job", "job.textproto", *LOCAL, "--run-dir", "{}"],
            "eval": ["eval", "--run-dir", "one", *LOCAL],
            "sweep": ["sweep", "--job", "job.textproto", "--values", "2", "--seeds", "1", "--fraction", "1", "--runs", "{}", *LOCAL],
            "compare": ["compare", "one", "two"],
            "verify": ["verify", "--job", "job.textproto", "--steps", "1", *LOCAL],
            "report": ["report", "one", "--output", "{}.html"],
            "fields": ["fields", "boundary.ratio"],
            "completion": ["completion", "bash"],
        }
        # Needs a run that is under way; its own tests have one.
        cls.elsewhere = {"status"}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    names = iter(range(10**9))

    def words(self, command, *more):
        name = f"new{next(self.names)}"
        return [word.replace("{}", name) for word in self.calls[command]] + list(more)

    def run_resbm(self, *words, env=None):
        return subprocess.run([RESBM, *words], cwd=self.folder, capture_output=True, text=True, timeout=100,
                              env={**os.environ, **(env or {})})

    def run_ok(self, *words):
        result = EveryCommand.run_resbm(self, *words)
        assert result.returncode == 0, f"{words}: {result.returncode}\n{result.stderr}"
        return result

    def on_terminal(self, *words, env=None):
        """(exit code, both streams) on a terminal."""
        parent, child = pty.openpty()
        process = subprocess.Popen([RESBM, *words], cwd=self.folder, stdin=child, stdout=child, stderr=child,
                                   env={**os.environ, "TERM": "xterm", **(env or {})})
        os.close(child)
        output = b""
        while True:
            try:
                data = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            output += data
        os.close(parent)
        return process.wait(), output.decode()

    def test_the_table_has_every_command(self):
        listed = self.run_ok("--help").stdout.split("Subcommands:")[1].split("\n\n")[0]
        self.assertEqual(set(re.findall(r"^  ([a-z]+) ", listed, re.M)), set(self.calls) | self.elsewhere)

    def test_json_is_one_document_on_stdout_and_a_pipe_gets_no_escape_sequences(self):
        for command in set(self.calls) - {"completion"}:
            with self.subTest(command):
                result = self.run_ok(*self.words(command, "--json"))
                json.loads(result.stdout)
                self.assertNotIn("\x1b", result.stderr)

    def test_quiet_leaves_nothing_on_stderr_and_a_pipe_gets_no_escape_sequences(self):
        for command in set(self.calls) - {"completion"}:
            with self.subTest(command):
                result = self.run_ok(*self.words(command, "-q"))
                self.assertEqual(result.stderr, "")
                self.assertNotIn("\x1b", result.stdout)

    def test_a_terminal_gets_colours_unless_they_are_refused(self):
        coloured = 0
        for command in set(self.calls) - {"completion"}:
            with self.subTest(command):
                code, output = self.on_terminal(*self.words(command), env={"NO_COLOR": ""})
                self.assertEqual(code, 0, output)
                coloured += bool(COLOUR.search(output))
                refusals = [(["--no-color"], {"NO_COLOR": ""}), ([], {"NO_COLOR": "1"})]
                # Those that start servers take their time, and ask in one place.
                for words, env in refusals[:1] if command in ("eval", "sweep", "verify") else refusals:
                    code, output = self.on_terminal(*self.words(command, *words), env=env)
                    self.assertEqual(code, 0, output)
                    self.assertIsNone(COLOUR.search(output), output)
        self.assertGreater(coloured, 2)

    def test_a_mistake_is_code_two_one_line_that_names_the_command_and_nothing_on_stdout(self):
        mistakes = {
            "init": ["init", "job.textproto"],
            "train": ["train", "--job", "nowhere.textproto"],
            "eval": ["eval", "--run-dir", "nowhere"],
            "sweep": ["sweep", "--job", "job.textproto", "--values", "3"],
            "compare": ["compare", "nowhere"],
            "verify": ["verify", "--job", "nowhere.textproto"],
            "report": ["report", "nowhere"],
            "fields": ["fields", "nowhere"],
            "completion": ["completion", "nowhere"],
        }
        self.assertEqual(set(mistakes), set(self.calls))
        for command, words in mistakes.items():
            with self.subTest(command):
                result = self.run_resbm(*words)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertTrue(result.stderr.startswith(f"resbm {command}: "), result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_a_stage_server_that_is_not_there_is_code_three(self):
        for command in ("train", "eval", "verify", "sweep"):
            with self.subTest(command):
                words = [w for w in self.words(command) if w not in LOCAL]
                result = self.run_resbm(*words, "--stages", "127.0.0.1:1,127.0.0.1:2", "--set", "timeouts.connect_seconds=0.2")
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertIn("127.0.0.1:2", result.stderr)

    def interrupted(self, times):
        name = f"interrupted{times}"
        process = subprocess.Popen([RESBM, "train", "--job", "job.textproto", *LOCAL, "--run-dir", name, "--set",
                                    "run.steps=1000000"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        metrics = self.folder / name / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while not (metrics.exists() and metrics.read_text().count("\n") > 2):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        if times == 2:
            process.send_signal(signal.SIGINT)
            # Two of one signal may arrive as one.
            while process.poll() is None:
                try:
                    process.wait(0.05)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        return self.folder / name

    def test_one_interrupt_saves_the_weights(self):
        run = self.interrupted(1)
        self.assertGreater((run / "model.safetensors").stat().st_size, 0)
        self.assertGreater(json.loads((run / "summary.json").read_text())["steps"], 0)

    def test_the_second_interrupt_stops_at_once(self):
        self.interrupted(2)  # ends, with 130; whether the weights were saved before it came is chance


if __name__ == "__main__":
    unittest.main()
