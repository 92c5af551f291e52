#!/usr/bin/env bash
# For a machine with a GPU, nvcc and a PyTorch wheel with CUDA: builds with --config=cuda and trains a small
# job on the CPU and on the GPU, at one and two stages. Under 5 minutes. Passes if the GPU's weights are bit
# for bit the same at both numbers of stages, and its losses are the CPU's within tolerance.
#
#   LIBTORCH_CUDA_VENV=~/cuda-venv bash tests/gpu_check.sh [cuda:0]
#
# The wheel: python3 -m venv ~/cuda-venv && ~/cuda-venv/bin/pip install torch
set -euo pipefail
cd "$(dirname "$0")/.."
device="${1:-cuda:0}"

config=()
case "$device" in cuda*) config=(--config=cuda) ;; esac
bazel build "${config[@]}" //coordinator/cli:resbm //stage_server:stage_server
output="$(bazel info "${config[@]}" bazel-bin 2>/dev/null)"
exec python3 tests/gpu_check.py --device "$device" --resbm "$output/coordinator/cli/resbm" \
  --stage-server "$output/stage_server/stage_server"
