#!/usr/bin/env bash
# Builds the container images: resbm/coordinator, resbm/stage-server, resbm/slow-link and resbm/prometheus.
#
#   bash deploy/images.sh [IMAGE...]       e.g. bash deploy/images.sh stage-server
#
# RESBM_TAG     their tag (default latest)
# BASE          the image they start from (default debian:bookworm-slim; debian:bookworm does too)
# DIST          a package that is there already; otherwise //deploy:dist is built
# BAZEL_CONFIG  for that build: cuda makes images for NVIDIA GPUs (LIBTORCH_CUDA_VENV, see tests/gpu_check.sh)
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${DIST:-}" ]; then
  bazel build ${BAZEL_CONFIG:+--config="$BAZEL_CONFIG"} //deploy:dist
  DIST="$(bazel info ${BAZEL_CONFIG:+--config="$BAZEL_CONFIG"} bazel-bin 2>/dev/null)/deploy/resbm.tar.gz"
fi
if [ $# -gt 0 ]; then images=("$@"); else images=(coordinator stage-server slow-link prometheus); fi

context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT
cp -L "$DIST" "$context/resbm.tar.gz"
cp deploy/slow_link.py "$context/"
for image in "${images[@]}"; do
  docker build --file deploy/docker/Dockerfile --target "$image" --build-arg BASE="${BASE:-debian:bookworm-slim}" \
    --tag "resbm/$image:${RESBM_TAG:-latest}" "$context"
done
