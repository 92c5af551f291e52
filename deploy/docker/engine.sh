# For the tests that need containers; they source it. It takes $work, an empty folder, and gives
#   start_engine   a running engine: the one that runs, or Debian's docker.io installed and started
#   stop_engine    ends what start_engine started by hand
#   base_image     sets and exports BASE: a Debian 12, pulled, or made by debootstrap where nothing can be pulled
# As root.
engine=""

install_packages() {
  apt-get update -q >"$work/apt.log" 2>&1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >>"$work/apt.log" 2>&1 ||
    { tail -20 "$work/apt.log"; return 1; }
}

start_engine() {
  docker info >/dev/null 2>&1 && return
  command -v dockerd >/dev/null || install_packages docker.io iptables
  if [ -d /run/systemd/system ]; then
    systemctl start docker
  else
    dockerd >"$work/dockerd.log" 2>&1 &
    engine=$!
  fi
  for _ in $(seq 100); do
    docker info >/dev/null 2>&1 && return
    [ -z "$engine" ] || kill -0 "$engine" 2>/dev/null || break
    sleep 0.3
  done
  [ -z "$engine" ] || tail -20 "$work/dockerd.log"
  return 1
}

stop_engine() {
  [ -n "$engine" ] || return 0
  kill "$engine"
  wait "$engine" || true
}

base_image() {
  local name
  for name in debian:bookworm-slim debian:bookworm resbm/base:bookworm; do
    docker image inspect "$name" >/dev/null 2>&1 && export BASE="$name" && return
  done
  if timeout 300 docker pull -q debian:bookworm-slim >"$work/pull.log" 2>&1; then
    export BASE=debian:bookworm-slim
    return
  fi
  command -v debootstrap >/dev/null || install_packages debootstrap
  debootstrap --variant=minbase bookworm "$work/base" >"$work/debootstrap.log" 2>&1 ||
    { tail "$work/debootstrap.log"; return 1; }
  tar -C "$work/base" -c . | docker import - resbm/base:bookworm >/dev/null
  rm -rf "$work/base"
  export BASE=resbm/base:bookworm
}
