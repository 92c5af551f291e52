#!/usr/bin/env bash
# From a clone to a trained model: installs what is needed, builds, and trains ResBM at r=16 on Fashion-MNIST
# over two local stage servers. Ends with a table. About half an hour on 2 cores, most of it the build; the
# training takes five minutes.
#
#   bash deploy/demo.sh [resbm train options, e.g. --set run.epochs=4]
#
# DEMO_RUNS chooses where the run directory goes (default runs/ here).
set -euo pipefail
cd "$(dirname "$0")/.."

bash deploy/setup.sh
bazel build //coordinator/cli:resbm //stage_server:stage_server
exec bazel-bin/coordinator/cli/resbm train --job deploy/jobs/fashion_mnist.textproto --runs "${DEMO_RUNS:-runs}" "$@"
