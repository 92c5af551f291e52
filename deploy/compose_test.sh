#!/usr/bin/env bash
# Runs the container demo on a small job, as root, and checks what comes out: the package in a bare container, the
# demo, the same over a slow link, an interrupted run that Prometheus watches, a stage that dies. Takes everything down
# again. Without Grafana, whose image needs Docker's registry.
#
#   bash deploy/compose_test.sh
#
# Where no engine runs, Debian's docker.io is installed and started (by hand without systemd). Where no image can be
# pulled, the base is made by debootstrap. DIST names a package that is there already (default: //deploy:dist is built).
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "compose_test: run me as root" >&2; exit 2; }

work="$(mktemp -d)"
. deploy/docker/engine.sh
export RESBM_TAG=compose-test
# Any free port: nobody looks from outside.
export PROMETHEUS_PORT=0
compose_files=(-f deploy/docker-compose.yml)
slow_files=("${compose_files[@]}" -f deploy/docker-compose.slow.yml)
compose() { "${compose_program[@]}" -p resbm-compose-test "$@"; }

finish() {
  status=$?
  if [ "${#compose_program[@]}" -gt 0 ]; then
    [ "$status" = 0 ] || compose "${slow_files[@]}" logs --no-color --tail=40 2>&1 | tail -120
    compose "${slow_files[@]}" down -v --remove-orphans >"$work/down.log" 2>&1 || cat "$work/down.log"
    docker image rm resbm/{coordinator,stage-server,slow-link,prometheus}:"$RESBM_TAG" >/dev/null 2>&1 || true
  fi
  stop_engine
  rm -rf "$work"
  [ "$status" = 0 ] && echo "compose_test: PASSED" || echo "compose_test: FAILED"
}
compose_program=()
trap finish EXIT

say() { echo "compose_test: $*"; }

start_engine
if ! docker compose version >/dev/null 2>&1; then
  command -v docker-compose >/dev/null || install_packages docker-compose
  compose_program=(docker-compose)
else
  compose_program=(docker compose)
fi
base_image

# --- The images.
say "building the images from $BASE"
bash deploy/images.sh >"$work/images.log" 2>&1 || { tail -40 "$work/images.log"; exit 1; }

small="--set run.steps=8 --set data.limit_train=768 --set data.limit_test=500"

# --- The package runs on a bare Debian, from any folder, without a network.
say "the package in a bare container"
docker run --rm --network none --user 0 --entrypoint bash \
  -v "${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}:/usr/share/datasets/fashion-mnist:ro" \
  "resbm/stage-server:$RESBM_TAG" -c "
    set -e
    mkdir /elsewhere && mv /opt/resbm '/elsewhere/a folder' && cd '/elsewhere/a folder/jobs'
    ../bin/resbm train --job fashion_mnist.textproto -q $small --run-dir /tmp/run
    test -s /tmp/run/model.safetensors" >"$work/bare.log" 2>&1 || { cat "$work/bare.log"; exit 1; }

# --- The demo.
# up FILES...: brings it up and waits for the coordinator; fails if it fails.
up() {
  compose "$@" up --no-color --exit-code-from coordinator >>"$work/up.log" 2>&1 || { tail -60 "$work/up.log"; return 1; }
}
container() { compose "${slow_files[@]}" ps -aq "$1" 2>/dev/null || compose "${slow_files[@]}" ps -q "$1"; }
# logged SERVICE PATTERN: whether a line of its log matches. By a file: grep -q ends before docker has written all.
logged() {
  docker logs "$(container "$1")" >"$work/service.log" 2>&1
  grep -q -- "$2" "$work/service.log"
}
# copy_runs FOLDER: the volume's run directories.
copy_runs() { docker cp "$(container coordinator)":/runs "$1"; }

say "the demo"
TRAIN_OPTIONS="$small" up "${compose_files[@]}"
copy_runs "$work/fast"
for stage in stage-0 stage-1; do
  user="$(docker inspect -f '{{.Config.User}}' "$(container "$stage")")"
  [ "$user" = 10001:10001 ] || { say "$stage runs as \"$user\""; exit 1; }
  logged "$stage" " evaluated job=" || { say "$stage was not used"; exit 1; }
done
compose "${compose_files[@]}" down -v >"$work/down.log" 2>&1

say "the demo over a slow link"
LINK_MBIT=1 LINK_DELAY_MS=20 TRAIN_OPTIONS="$small" up "${slow_files[@]}"
copy_runs "$work/slow"
compose "${slow_files[@]}" down -v >"$work/down.log" 2>&1

python3 - "$work/fast/fashion-mnist-r16-1" "$work/slow/fashion-mnist-r16-1" <<'PY'
import json, pathlib, sys

fast, slow = (pathlib.Path(folder) for folder in sys.argv[1:])
results = [json.loads((run / "summary.json").read_text()) for run in (fast, slow)]
for result in results:
    assert result["steps"] == 8 and result["samples"] == 768, result
    assert 0 <= result["top1"] <= 1, result["top1"]
    assert len(result["stages"]) == 2, result["stages"]
    for stage in result["stages"]:
        assert stage["forward_seconds"] > 0 and stage["backward_seconds"] > 0, stage
    assert {b["direction"] for b in result["boundaries"]} == {"activations", "gradients"}, result["boundaries"]
    for boundary in result["boundaries"]:
        # One cut of 32 channels at 14 x 14, 96 samples a step: fp16 would take 2 bytes each.
        assert boundary["uncompressed_bytes"]["fp16"] == 96 * 32 * 14 * 14 * 2, boundary
        assert boundary["payload_bytes"] * 16 == boundary["uncompressed_bytes"]["fp16"], boundary
# 75,264 bytes at 1 Mbit/s take 0.6 s each way. A link changes the time, not the weights.
assert results[1]["step_seconds_median"] > 0.6, results[1]["step_seconds_median"]
assert results[1]["communication_share_exposed"] > results[0]["communication_share_exposed"], results
assert (fast / "model.safetensors").read_bytes() == (slow / "model.safetensors").read_bytes(), "weights differ"
print("compose_test: top-1 %.3f; step %.2f s, over the slow link %.2f s; weights equal in every bit" %
      (results[0]["top1"], results[0]["step_seconds_median"], results[1]["step_seconds_median"]))
PY

# --- Told to stop, the coordinator finishes its step and saves; the stage servers serve the next run.
# started N: until the coordinator has reported a step.
started() {
  for _ in $(seq 300); do
    logged coordinator "^step " && return
    sleep 0.2
  done
  say "no step in a minute"
  return 1
}
exit_code() { docker inspect -f '{{.State.ExitCode}}' "$(container coordinator)"; }

# prometheus QUERY: its values, one a line.
prometheus() {
  docker exec "$(container prometheus)" promtool query instant http://127.0.0.1:9090 "$1" | sed -n 's/.*=> \([^ ]*\) @.*/\1/p'
}
# scraped QUERY COUNT: until Prometheus has so many values for it.
scraped() {
  for _ in $(seq 150); do
    [ "$(prometheus "$1" | wc -l)" = "$2" ] && return
    sleep 0.2
  done
  say "Prometheus has no $2 values for $1:"
  docker exec "$(container prometheus)" promtool query instant http://127.0.0.1:9090 "$1"
  return 1
}
# page SERVICE: its /metrics, over the containers' network.
page() {
  local address
  address="$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$(container "$1")")"
  python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read().decode(), end="")' \
    "http://$address:9464/metrics"
}

say "a run that Prometheus watches and that is told to stop"
TRAIN_OPTIONS="--set run.steps=100000" compose "${compose_files[@]}" up -d >>"$work/up.log" 2>&1
started
scraped 'resbm_train_loss > 0' 1
scraped 'resbm_train_boundary_payload_bytes_total > 0' 2          # activations and gradients
scraped 'resbm_stage_link_payload_bytes_total > 0' 6              # inputs and targets come in only
scraped 'resbm_stage_steps_total{decision="apply"} > 0' 2
scraped 'up == 1' 3
scraped 'resbm_stage_ready == 1' 2
[ -z "$(prometheus 'ALERTS{alertstate="firing"}')" ] || { say "alerts fire:"; prometheus 'ALERTS'; exit 1; }
for service in stage-0 stage-1 coordinator; do
  page "$service" >"$work/$service.metrics"
  docker exec -i "$(container prometheus)" promtool check metrics <"$work/$service.metrics"
done
docker exec "$(container prometheus)" promtool check config /etc/prometheus/prometheus.yml >"$work/promtool.log" ||
  { cat "$work/promtool.log"; exit 1; }
docker exec "$(container coordinator)" resbm status fashion-mnist-r16-1 | tee "$work/status.log"
grep -q "holds 2 of 2 stage servers" "$work/status.log"
compose "${compose_files[@]}" stop coordinator >>"$work/up.log" 2>&1
[ "$(exit_code)" = 130 ] || { say "stopped with exit code $(exit_code), not 130"; exit 1; }
copy_runs "$work/stopped"
[ -s "$work/stopped/fashion-mnist-r16-1/model.safetensors" ] || { say "the stopped run has no weights"; exit 1; }

say "a run that loses a stage"
TRAIN_OPTIONS="--set run.steps=100000" compose "${compose_files[@]}" up -d >>"$work/up.log" 2>&1
started
docker kill "$(container stage-1)" >/dev/null
timeout 120 docker wait "$(container coordinator)" >/dev/null
[ "$(exit_code)" = 3 ] || { say "a lost stage gave exit code $(exit_code), not 3"; exit 1; }
logged coordinator "stage 1 was lost" || { say "the lost stage is not named"; exit 1; }
