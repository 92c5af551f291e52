#!/bin/bash
# quality_test.sh QUALITY_PY RESBM STAGE_SERVER: the benchmark of docs/benchmarks/quality.md in short: two arms of images
# and two of text on a handful of samples, the rate search included, then a second call that trains nothing again.
set -euo pipefail
quality="$(realpath "$1")"; resbm="$(realpath "$2")"; stage_server="$(realpath "$3")"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/quality.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cp "$resbm" "$stage_server" "$work/bin/"

run() { python3 -B "$quality" "$@" --out "$work/$1" --resbm "$work/bin/resbm" --seeds 1; }
fail() { echo "$1" >&2; cat "$work/table" >&2; exit 1; }

images=(images --arms "identity,r=16" --set run.epochs=1 --set data.limit_train=256 --set data.limit_test=100)
run "${images[@]}" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
grep '^|' "$work/log" > "$work/table"
grep -q '^| identity | 0\.[0-9]* | 1 | .* | 12544 |$' "$work/table" || fail "no row of identity"
grep -q '^| r=16 | 0\.[0-9]* | 1 | .* | 784 |$' "$work/table" || fail "no row of r=16"
run "${images[@]}" > "$work/again" 2>&1
! grep -q '^done' "$work/again" || { echo "trained again" >&2; exit 1; }

seq 1 20000 | tr '\n' ' ' > "$work/numbers.txt"
run text --arms "Muon identity,Muon in-branch 16x" --set run.steps=2 --search-set run.steps=2 --set data.limit_test=4 --set batch.samples=4 \
  --set "data={text { file: '$work/numbers.txt' }}" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
grep '^|' "$work/log" > "$work/table"
# 128 positions of 128 and of 8 values, fp16, both ways.
grep -q '^| Muon identity | 0\.[0-9]* | 1 | .* | 65536 |$' "$work/table" || fail "no row of identity"
grep -q '^| Muon in-branch 16x | 0\.[0-9]* | 1 | .* | 4096 |$' "$work/table" || fail "no row of in-branch 16x"
