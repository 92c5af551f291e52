"""The documentation as data: pages, their code blocks with what is said about them, code spans, links, tables.

A block of commands is ```sh. What stands right before it says how it is tested:

  (nothing)                 run by a test, in the order of the page, in one shell
  <!-- slow: why -->        run too, but by the slow tests only (bazel test //tests/docs:slow)
  <!-- not run: why -->     not run
  # on MACHINE              (its first line, docs/deployment.md) run by deploy/namespaces_test.py

<!-- output --> before a ```text block: what the block of commands before it prints. Numbers stand for any numbers, a
line "..." for any lines. <!-- errors: N --> before a table of commands and messages: each command ends with exit code N
and says that.
"""

import dataclasses
import pathlib
import re

COMMENT = re.compile(r"<!--\s*(slow|not run|output|errors|example)(?::\s*(.*?))?\s*-->$")


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    note: str = ""  # "slow", "not run", "output", "errors", "example"
    reason: str = ""

    @property
    def kind(self):
        """Of a block of commands: "run", "slow", "not run", "machines"."""
        if self.note:
            return self.note
        return "machines" if self.text.startswith("# on ") else "run"


class Page:
    def __init__(self, path):
        self.path = path
        self.blocks, self.spans, self.links, self.headings, self.tables = [], [], [], [], []
        lines = path.read_text().split("\n")
        note = ("", "")
        i = 0
        while i < len(lines):
            line = lines[i]
            comment = COMMENT.match(line.strip())
            if comment:
                note = (comment.group(1), comment.group(2) or "")
            elif line.startswith("```"):
                end = next(j for j in range(i + 1, len(lines)) if lines[j] == "```")
                self.blocks.append(Block(i + 1, line[3:], "\n".join(lines[i + 1:end]), *note))
                note, i = ("", ""), end
            elif line.startswith("|") and note[0] == "errors":
                end = next(j for j in range(i, len(lines) + 1) if j == len(lines) or not lines[j].startswith("|"))
                rows = [re.match(r"\| `(.*?)` \| `(.*?)` \|$", row) for row in lines[i + 2:end]]
                assert all(rows), f"{path}:{i + 1}: a row that is not | `command` | `message` |"
                self.tables.append((i + 1, int(note[1]), [row.groups() for row in rows]))
                note = ("", "")
                self._prose(lines[i:end], i)
                i = end - 1
            else:
                if line.strip():
                    assert note == ("", ""), f"{path}:{i + 1}: a comment {note} that no block follows"
                self._prose([line], i)
            i += 1

    def _prose(self, lines, at):
        for number, line in enumerate(lines, at + 1):
            if line.startswith("#"):
                self.headings.append(line.lstrip("#").strip())
            for span in re.findall(r"`([^`]+)`", line):
                self.spans.append((number, span))
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                self.links.append((number, target))

    def anchors(self):
        """As GitHub makes them."""
        seen = {}
        for heading in self.headings:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            yield slug if count == 0 else f"{slug}-{count}"

    def commands(self):
        return [block for block in self.blocks if block.language == "sh"]


def root():
    """The repository: this file is in it, also where the test sees a link to it."""
    return pathlib.Path(__file__).resolve().parents[2]


def pages():
    """All pages by their path in the repository."""
    top = root()
    found = [top / "README.md", top / "CONTRIBUTING.md", *sorted((top / "docs").rglob("*.md"))]
    return {str(path.relative_to(top)): Page(path) for path in found}
