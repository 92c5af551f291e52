"""What the documentation says exists: links, anchors, options, files, build targets, job fields; and every block of
commands says how it is tested.

Usage: pages_test.py RESBM STAGE_SERVER
"""

import json
import re
import subprocess
import sys
import unittest

import pages

RESBM, STAGE_SERVER = sys.argv[1:3]
del sys.argv[1:3]

ROOT = pages.root()
PAGES = pages.pages()
FOLDERS = sorted(p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(("bazel-", ".git", "runs")))
FILES = (".md", ".h", ".cc", ".py", ".safetensors", ".json", ".jsonl", ".textproto", ".html")
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")


def help_of(*command):
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout


def options_in(help_text):
    """What a help lists: lines that begin with options."""
    found = set()
    for line in help_text.split("\n"):
        if re.match(r"\s+-", line):
            found.update(re.findall(r"(?:^|[\s,])(--?[a-zA-Z][a-z-]*)", line.split("  ")[1] if line.startswith("  ") else line))
    return found


COMMANDS = re.findall(r"^  ([a-z]+) ", help_of(RESBM).split("Subcommands:")[1], re.M)
OPTIONS = {command: options_in(help_of(RESBM, command)) for command in COMMANDS}
OPTIONS[""] = options_in(help_of(RESBM))
OPTIONS["stage_server"] = options_in(help_of(STAGE_SERVER))
FIELDS = {f["path"]: f for f in json.loads(subprocess.run([RESBM, "fields", "--json"], capture_output=True, check=True).stdout)}


def programs_called(text):
    """(program or command of resbm, its words) of each call in a line of shell."""
    text = re.sub(r"(?<!\S)#.*", "", text)
    for part in re.split(r"[|;&()]+|\$ ", text):
        words = part.split()
        for i, word in enumerate(words):
            name = word.rsplit("/", 1)[-1]
            if name == "resbm":
                command = words[i + 1] if i + 1 < len(words) and words[i + 1] in COMMANDS else ""
                yield command, words[i + 1:]
                break
            if name == "stage_server":
                yield "stage_server", words[i + 1:]
                break


def field_exists(path):
    """"cut_point[1].boundary.ratio", "cut_point.1.after", "optimizer.group"."""
    path = re.sub(r"\[(\d+|i)\]", "", re.sub(r"\.\d+(?=\.|$)", "", path))
    known = {re.sub(r"\[i\]", "", p): f for p, f in FIELDS.items()}
    for _ in range(4):  # fields of a message that is listed elsewhere
        if path in known:
            return True
        for prefix, field in known.items():
            if field["same_as"] and path.startswith(prefix + "."):
                path = re.sub(r"\[i\]", "", field["same_as"]) + path[len(prefix):]
                break
        else:
            return False
    return path in known


class Links(unittest.TestCase):
    def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading(self):
        for name, page in PAGES.items():
            for line, target in page.links:
                if re.match(r"https?:", target):
                    continue
                path, _, anchor = target.partition("#")
                to = (page.path.parent / path).resolve() if path else page.path
                self.assertTrue(to.exists(), f"{name}:{line}: {target}")
                if anchor:
                    key = str(to.relative_to(ROOT))
                    self.assertIn(anchor, list(PAGES[key].anchors()), f"{name}:{line}: {target}")

    def test_every_page_is_reached_from_the_front_page(self):
        reached, new = set(), {"README.md"}
        while new:
            name = new.pop()
            reached.add(name)
            for _, target in PAGES[name].links:
                path = (PAGES[name].path.parent / target.partition("#")[0]).resolve()
                if path.suffix == ".md" and path.is_relative_to(ROOT) and str(path.relative_to(ROOT)) not in reached:
                    new.add(str(path.relative_to(ROOT)))
        self.assertEqual(set(PAGES), reached)


class Commands(unittest.TestCase):
    def test_every_block_of_commands_says_how_it_is_tested(self):
        for name, page in PAGES.items():
            for block in page.blocks:
                where = f"{name}:{block.line}"
                if block.language == "sh":
                    self.assertIn(block.kind, ("run", "slow", "not run", "machines"), where)
                    if block.note:
                        self.assertGreater(len(block.reason.split()), 2, f"{where}: say why")
                    if block.kind == "machines":
                        self.assertEqual(name, "docs/deployment.md", f"{where}: only namespaces_test.py has machines")
                else:
                    self.assertIn(block.language, ("", "text", "textproto", "python"), where)
                    called = re.search(r"^(\S+\$ )?(\$ |resbm |stage_server |bazel |bash |python3 |sudo )", block.text, re.M)
                    if block.note != "output" and called:
                        self.fail(f"{where}: commands in a block that is not ```sh: {called.group(0)}")

    def test_every_option_exists(self):
        def check(where, text):
            for program, words in programs_called(text):
                for word in words:
                    option = OPTION.match(word)
                    # --jbo is wrong on purpose, in the table of error messages.
                    if option and option.group(1) != "--jbo" and not word.startswith("-c"):
                        self.assertIn(option.group(1), OPTIONS[program] | OPTIONS[""],
                                      f"{where}: {program or 'resbm'} has no {option.group(1)}")

        everywhere = set().union(*OPTIONS.values())
        other = {"--config", "--asan", "--cuda", "--cpu", "--exit-code-from", "--profile"}  # bazel, tests/run.sh, docker
        for name, page in PAGES.items():
            for block in page.commands():
                for line in block.text.replace("\\\n", " ").split("\n"):
                    check(f"{name}:{block.line}", line)
            for line, span in page.spans:
                where = f"{name}:{line}"
                if span.startswith("--"):
                    option = OPTION.match(span)
                    self.assertIn(option.group(1), everywhere | other, where)
                elif re.match(rf"(resbm ({'|'.join(COMMANDS)})|stage_server) ", span):
                    check(where, span)


class Names(unittest.TestCase):
    def test_every_file_and_build_target_exists(self):
        def exists(path):
            path = path.rstrip("/.}")
            if any(ROOT.glob(path)):
                return True
            return any(any(ROOT.glob(path + suffix)) for suffix in (".h", ".cc", ".py", ".sh", "_test.cc", "_test.py"))

        for name, page in PAGES.items():
            texts = page.spans + [(b.line, word) for b in page.commands() for word in b.text.split()]
            for line, span in texts:
                where = f"{name}:{line}: {span}"
                for label in re.findall(r"(?<![\w:/])//([a-z_0-9/]+):([a-z_0-9]+)", span):
                    build = ROOT / label[0] / "BUILD"
                    self.assertTrue(build.exists(), where)
                    self.assertTrue(label[1] in ("all",) or (ROOT / label[0] / label[1]).exists()
                                    or re.search(rf'"{label[1]}"|"{label[1].removesuffix("_test")}":', build.read_text()), where)
                for path in re.findall(rf"(?<![\w/:.@-])((?:{'|'.join(FOLDERS)})/[\w./*{{}},-]*)", span):
                    if path.startswith(("proto/resbm/v1/*", "runs/")) or "{" in path:
                        continue
                    self.assertTrue(exists(path), where)

    def test_every_job_field_exists(self):
        first = {re.sub(r"\[i\]", "", path).split(".")[0] for path in FIELDS}
        for name, page in PAGES.items():
            for line, span in page.spans:
                path = re.match(r"([a-z_]+(?:\[\d\]|\.\d+)?(?:\.[a-z_0-9]+(?:\[\d\])?)+)(?:=.*)?$", span)
                if path and path.group(1).split(".")[0].split("[")[0] in first and not span.endswith(FILES):
                    self.assertTrue(field_exists(path.group(1)), f"{name}:{line}: no job field {span}")
            texts = [(b.line, b.text) for b in page.commands()] + page.spans
            for line, text in texts:
                for path in re.findall(r"--(?:split-)?set '?([a-z_]+[\w.\[\]]*)=", text):
                    if path == "path":  # any
                        continue
                    wrong = path == "bondary.ratio"  # on purpose, in the table of error messages
                    self.assertEqual(field_exists(path), not wrong, f"{name}:{line}: no job field {path}")


if __name__ == "__main__":
    unittest.main()
