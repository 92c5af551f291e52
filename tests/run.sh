#!/usr/bin/env bash
# Installs what is needed, builds and runs every test. The last line is `N passed, N failed, N skipped`.
#
#   bash tests/run.sh            every test once; the torch-free concurrent part again under ThreadSanitizer
#   bash tests/run.sh --asan     also everything under AddressSanitizer (and LeakSanitizer)
#   bash tests/run.sh --cuda     also everything against a CUDA wheel (LIBTORCH_CUDA_VENV, nvcc)
set -euo pipefail
cd "$(dirname "$0")/.."

modes=()
for argument in "$@"; do
  case "$argument" in
    --asan | --cuda) modes+=("${argument#--}") ;;
    *) echo "usage: bash tests/run.sh [--asan] [--cuda]" >&2; exit 2 ;;
  esac
done

bash deploy/setup.sh

counts="$(mktemp -d)/counts.json"
trap 'rm -rf "$(dirname "$counts")"' EXIT
status=0
run() { python3 tests/count.py --out "$counts" "$@" || status=1; }

# Everything is built, so that what no test uses (benchmarks, deploy) cannot rot.
bazel build //... || status=1
run //tests/...
run --config=tsan --test_tag_filters=tsan --build_tests_only //tests/...
for mode in "${modes[@]}"; do
  run --config="$mode" --build_tests_only //tests/...
done

python3 - "$counts" <<'PY'
import json, sys
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % json.load(open(sys.argv[1])), flush=True)
PY
exit "$status"
