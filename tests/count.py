#!/usr/bin/env python3
"""Runs `bazel test ARGUMENTS` and says how many test cases passed, failed and were skipped.

  python3 tests/count.py --out counts.json //tests/...

Test cases, not targets: read from Bazel's build events and each target's test.xml. A target that crashed,
timed out, did not build or was never run counts as one failure. With --out, the counts are also added to a
JSON file, so that several runs can be summed.
"""
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree as ET


def cases_of(result):
    uris = [o["uri"] for o in result.get("testActionOutput", []) if o["name"] == "test.xml" and "uri" in o]
    try:
        return list(ET.parse(urllib.parse.unquote(uris[0][len("file://"):])).iter("testcase"))
    except (IndexError, OSError, ET.ParseError):
        return []


def verdict(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("result") == "skipped" or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def count(events_path):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    configured, last = set(), {}
    with open(events_path) as events:
        for line in events:
            try:
                event = json.loads(line)
            except ValueError:
                break  # bazel was killed while it wrote
            name = event.get("id", {})
            if event.get("configured", {}).get("testSize"):
                configured.add(name["targetConfigured"]["label"])
            if "testResult" in event and "testResult" in name:
                r = name["testResult"]  # the last attempt of each run and shard counts
                last[r["label"], r.get("run"), r.get("shard")] = event["testResult"]
    for (label, _, _), result in last.items():
        cases = cases_of(result)
        verdicts = [verdict(c) for c in cases]
        for v in verdicts:
            counts[v] += 1
        if result["status"] != "PASSED" and "failed" not in verdicts:
            print("%s: %s" % (label, result["status"]))
            counts["failed"] += 1  # a crash, a time-out, a sanitizer's exit: no case says so
        if result["status"] == "PASSED" and not cases:
            counts["passed"] += 1
    for label in sorted(configured - {label for label, _, _ in last}):
        print("no result: %s" % label)
        counts["failed"] += 1
    return counts


def main(arguments):
    out = None
    if arguments[:1] == ["--out"]:
        out, arguments = arguments[1], arguments[2:]
    with tempfile.NamedTemporaryFile(suffix=".json") as events:
        code = subprocess.call(["bazel", "test", "--build_event_json_file=" + events.name, *arguments])
        counts = count(events.name)
    if code not in (0, 4) and not counts["failed"]:
        counts["failed"] += 1  # e.g. a BUILD file that does not load
    if out:
        before = json.load(open(out)) if os.path.exists(out) else {}
        with open(out, "w") as f:
            json.dump({k: v + before.get(k, 0) for k, v in counts.items()}, f)
    else:
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts, flush=True)
    return 0 if code in (0, 4) and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
