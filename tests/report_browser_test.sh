#!/usr/bin/env bash
# Opens reports in a headless Chromium: everything is drawn, nothing is loaded, nothing goes wrong. Not a part of
# tests/run.sh: a browser is 350 MB that nothing else here needs (apt-get install chromium). Fails where there is none.
#
#   bash tests/report_browser_test.sh                     every test
#   bash tests/report_browser_test.sh --keep DIRECTORY    and the reports stay in DIRECTORY, to be looked at
set -euo pipefail
cd "$(dirname "$0")/.."

directory="$(mktemp -d)"
case "${1:-}" in
  "") trap 'rm -rf "$directory"' EXIT ;;
  --keep) mkdir -p "$2"; rmdir "$directory"; directory="$(realpath "$2")" ;;
  *) echo "usage: bash tests/report_browser_test.sh [--keep DIRECTORY]" >&2; exit 2 ;;
esac

bazel build //tests/coordinator/html:write_reports
bazel-bin/tests/coordinator/html/write_reports "$directory"
python3 tests/coordinator/html/browser_test.py "$directory"
