#!/usr/bin/env bash
# Boots a Debian with systemd in a container, as root; installs the package's units as their heads say; trains; and
# checks starting, restarting and stopping.
#
#   bash deploy/systemd_test.sh
#
# Engine, base image and DIST as in deploy/compose_test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "systemd_test: run me as root" >&2; exit 2; }

work="$(mktemp -d)"
. deploy/docker/engine.sh
machine=resbm-systemd-test

finish() {
  status=$?
  [ "$status" = 0 ] || docker exec "$machine" journalctl --no-pager -n 60 -u 'resbm-*' 2>&1 || true
  docker rm -f "$machine" >/dev/null 2>&1 || true
  docker image rm "$machine" >/dev/null 2>&1 || true
  stop_engine
  rm -rf "$work"
  [ "$status" = 0 ] && echo "systemd_test: PASSED" || echo "systemd_test: FAILED"
}
trap finish EXIT

say() { echo "systemd_test: $*"; }
fail() { say "$*"; exit 1; }
on() { docker exec "$machine" bash -euo pipefail -c "$*"; }
property() { on "systemctl show -P $2 $1"; }
expect() { [ "$(property "$1" "$2")" = "$3" ] || fail "$1: $2 is $(property "$1" "$2"), not $3"; }
# eventually UNIT PROPERTY VALUE
eventually() {
  for _ in $(seq 100); do
    [ "$(property "$1" "$2")" = "$3" ] && return
    sleep 0.2
  done
  expect "$1" "$2" "$3"
}
# The commands in the head of a unit.
install_commands() { on "sed -n 's/^#   //p' /opt/resbm/systemd/$1" | grep -v journalctl; }

start_engine
base_image
if [ -z "${DIST:-}" ]; then
  bazel build //deploy:dist
  DIST="$(bazel info bazel-bin 2>/dev/null)/deploy/resbm.tar.gz"
fi

say "a Debian with systemd"
cat >"$work/Dockerfile" <<'DOCKERFILE'
ARG BASE
FROM ${BASE}
RUN apt-get update -q && apt-get install -y -q --no-install-recommends systemd dbus && rm -rf /var/lib/apt/lists/*
STOPSIGNAL SIGRTMIN+3
CMD ["/lib/systemd/systemd"]
DOCKERFILE
docker build -q --build-arg BASE="$BASE" --tag "$machine" - <"$work/Dockerfile" >"$work/image.log" 2>&1 ||
  { cat "$work/image.log"; exit 1; }
docker run -d --name "$machine" --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add SYS_PTRACE \
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined --tmpfs /run --tmpfs /run/lock \
  -v /sys/fs/cgroup:/sys/fs/cgroup \
  -v "${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}:/usr/share/datasets/fashion-mnist:ro" "$machine" >/dev/null
for _ in $(seq 100); do
  state="$(docker exec "$machine" systemctl is-system-running 2>/dev/null || true)"
  case "$state" in running | degraded) break ;; esac
  sleep 0.2
done
[ "$state" = running ] || fail "the container's systemd is \"$state\""
docker exec -i "$machine" tar xz -C /opt <"$DIST"

say "stage servers"
on "$(install_commands resbm-stage@.service)"
on "sed s/50051/50052/ /opt/resbm/systemd/stage.env >/etc/resbm-stage-1.env; systemctl enable --now resbm-stage@1"
for n in 0 1; do
  # No waiting: systemctl came back because the stage server had said that it listens.
  on "/opt/resbm/bin/health_probe 127.0.0.1:5005$((n + 1))"
  expect "resbm-stage@$n" Type notify
  expect "resbm-stage@$n" ActiveState active
  user="$(on "stat -c %U /proc/\$(systemctl show -P MainPID resbm-stage@$n)")"
  [ "$user" != root ] || fail "stage server $n runs as root"
done

say "one whose port is taken is not started again"
on "cp /etc/resbm-stage-1.env /etc/resbm-stage-2.env; ! systemctl start resbm-stage@2 2>/dev/null"
expect resbm-stage@2 ActiveState failed
expect resbm-stage@2 ExecMainStatus 2
expect resbm-stage@2 NRestarts 0

say "a training run"
on "$(install_commands resbm-train.service | grep -v 'systemctl start')"
settings() {
  on "cat >/etc/resbm-train.env <<E
JOB=/opt/resbm/jobs/fashion_mnist.textproto
STAGES=127.0.0.1:50051,127.0.0.1:50052
OPTIONS=$*
E
systemctl daemon-reload"
}
settings "--set run.steps=8 --set data.limit_train=768 --set data.limit_test=500"
on "systemctl start --wait resbm-train"  # and fails if it fails
runs=/var/lib/resbm/runs/fashion-mnist-r16
on "test -s $runs-1/model.safetensors && grep -q top1 $runs-1/summary.json"

say "stopped, a run saves its weights"
settings "--set run.steps=100000"
on "systemctl start resbm-train"
for _ in $(seq 200); do
  on "test -s $runs-2/metrics.jsonl" 2>/dev/null && break
  sleep 0.2
done
on "systemctl stop resbm-train; test -s $runs-2/model.safetensors"
expect resbm-train ActiveState inactive  # not failed, for all its exit code 130

say "a stage server that is killed comes back"
on "systemctl kill --signal=KILL resbm-stage@0"
eventually resbm-stage@0 NRestarts 1
eventually resbm-stage@0 ActiveState active
on "/opt/resbm/bin/health_probe 127.0.0.1:50051"

say "stopped, a stage server ends at once and well"
on "timeout 5 systemctl stop resbm-stage@0"
expect resbm-stage@0 ActiveState inactive  # not failed
