"""Runs the commands of a page as a reader would, in a copy of the repository's face, and compares what they print.

Usage: run_page.py RESBM STAGE_SERVER PAGE fast|slow

fast: the blocks without a comment. slow: those and the slow ones. Ports 5xxxx become free ones, so that pages can run
at the same time.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

import pages

MARK = "@@@@ "
TIMEOUT_SECONDS = {"fast": 280, "slow": 3000}


def free_ports(text):
    """The text with each port from 50000 to 59999 replaced by a free one."""
    held, names = [], {}
    for port in sorted(set(re.findall(r":(5\d{4})\b", text))):
        listener = socket.create_server(("127.0.0.1", 0))
        held.append(listener)
        names[port] = str(listener.getsockname()[1])
    for listener in held:
        listener.close()
    return re.sub(r":(5\d{4})\b", lambda m: ":" + names[m.group(1)], text)


def script_of(page, pace):
    """One shell script, with a line of its own before the output of each block and each command of a table."""
    parts, wanted = [], {"run"} if pace == "fast" else {"run", "slow"}
    steps = [(b.line, "block", b) for b in page.commands() if b.kind in wanted]
    steps += [(line, "errors", (code, rows)) for line, code, rows in page.tables]
    for line, kind, what in sorted(steps, key=lambda step: step[0]):
        if kind == "block":
            parts.append(f"echo '{MARK}{line}'\n{what.text}\n")
            continue
        code, rows = what
        for index, (command, _) in enumerate(rows):
            # In this shell, whose variables it may use.
            parts.append(f"echo '{MARK}{line} {index}'\nset +e\n{command}\ncode=$?\nset -e\n"
                         f"[ $code = {code} ] || echo \"WRONG EXIT CODE $code\"\n")
    return "set -euo pipefail\n" + "".join(parts) + f"echo '{MARK}end'\n"


def lay_out(folder, resbm, stage_server):
    """What a clone has that a reader needs, as links; and the programs."""
    for name in ("deploy", "docs", "proto", "tests", "LICENSE"):
        (folder / name).symlink_to(pages.root() / name)
    (folder / "bin").mkdir()
    for program in (resbm, stage_server):
        (folder / "bin" / os.path.basename(program)).symlink_to(os.path.abspath(program))


def kill_group(group):
    """Whether there was anything to kill."""
    try:
        os.killpg(group, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


def shape(line):
    """A line with its numbers as #, and one space for many."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.:]*(e-\d+)?", "#", line)).strip()


def mismatch(shown, printed):
    """None, or the first line shown that was not printed."""
    lines, at, free = [shape(line) for line in printed.split("\n")], 0, True
    for line in shown.split("\n"):
        if line.strip() == "...":
            free = True
            continue
        if not line.strip() and free:
            continue
        try:
            found = lines.index(shape(line), at)
        except ValueError:
            return line
        if not free and any(lines[at:found]):
            return f"{line}   (printed, but after: {next(filter(None, lines[at:found]))})"
        at, free = found + 1, False
    return None


def run(page, resbm, stage_server, pace):
    """(exit code of the shell or None when it took too long, what each section printed, whether servers were left)."""
    script = free_ports(script_of(page, pace))
    with tempfile.TemporaryDirectory(prefix="resbm-docs-") as folder:
        folder = pathlib.Path(folder)
        lay_out(folder, resbm, stage_server)
        environment = dict(os.environ, PATH=f"{folder}/bin:/usr/bin:/bin", HOME=os.environ.get("HOME", str(folder)))
        # A file, not a pipe: a server that a block left would keep that open.
        with open(folder / ".printed", "w+") as printed:
            shell = subprocess.Popen(["/bin/bash", "-c", script], cwd=folder, env=environment, stdout=printed,
                                     stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = shell.wait(timeout=TIMEOUT_SECONDS[pace])
            except subprocess.TimeoutExpired:
                code = None
            left = kill_group(shell.pid)
            shell.wait()
            printed.seek(0)
            return code, printed.read(), left


def check(page, name, resbm, stage_server, pace):
    """What is wrong, and what was done."""
    code, output, left = run(page, resbm, stage_server, pace)
    printed = {}
    for section in output.split(MARK)[1:]:
        mark, _, text = section.partition("\n")
        printed[mark.strip()] = text
    if code is None:
        return [f"{name} takes longer than {TIMEOUT_SECONDS[pace]} s:\n{output}"], ""
    if code != 0 or "end" not in printed:
        return [f"{name}: exit code {code} after\n{output}"], ""

    failures, compared = [], 0
    ran = None
    for block in page.blocks:
        if block.language == "sh":
            ran = printed.get(str(block.line))
        elif block.note == "output" and ran is not None:
            compared += 1
            wrong = mismatch(block.text, ran)
            if wrong is not None:
                failures.append(f"{name}:{block.line}: not printed: {wrong}\n  what was printed:\n{ran}")
    for line, _, rows in page.tables:
        for index, (command, message) in enumerate(rows):
            text = printed[f"{line} {index}"]
            if "WRONG EXIT CODE" in text or free_of_ports(message) not in free_of_ports(text):
                failures.append(f"{name}:{line}: {command}\n  expected: {message}\n  printed: {text}")
    if left:
        failures.append(f"{name}: processes are left running by its blocks")
    return failures, f"{name}: {len(printed) - 1} blocks and commands run, {compared} outputs compared"


def free_of_ports(text):
    return re.sub(r"\s+", " ", re.sub(r":\d{5}\b", ":PORT", text))


def main():
    resbm, stage_server, name, pace = sys.argv[1:5]
    failures, done = check(pages.Page(pages.root() / name), name, resbm, stage_server, pace)
    if failures:
        sys.exit("\n".join(failures))
    print(done)


if __name__ == "__main__":
    main()
