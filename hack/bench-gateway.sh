#!/usr/bin/env bash
# Measures slipway-gateway beside nginx, Caddy and Traefik (docs/performance.md). Arguments go to hack/gatewaybench.
#
# nginx and wrk come from Debian. Caddy and Traefik come from their Go modules, pinned in hack/gatewaybench/peers. They are
# built once, which takes minutes, into ${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/peers/<hash of pin and Go version>.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
PATH=$PATH:/usr/sbin # where Debian has nginx

# install installs the Debian packages of missing programs. Where systemd runs, the package of nginx also starts a service.
# The measurement does not use it.
install() {
  local packages=() name
  for name in nginx wrk; do
    if ! command -v "$name" >/dev/null; then packages+=("$name"); fi
  done
  if [[ ${#packages[@]} == 0 ]]; then return; fi
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "bench-gateway: please install: ${packages[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2
  apt-get install -q -y --no-install-recommends "${packages[@]}" >&2
}

# peer NAME PACKAGE prints the path of a pinned proxy, building it first when it is not in the cache yet.
peer() {
  local name=$1 package=$2 module=$root/hack/gatewaybench/peers/$1 hash binary start=$SECONDS
  hash=$( (cat "$module/go.mod" "$module/go.sum"; go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-16)
  binary=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/peers/$hash/$name
  if [[ ! -x $binary ]]; then
    echo "bench-gateway: building $name (once)" >&2
    mkdir -p "$(dirname "$binary")"
    CGO_ENABLED=0 go build -C "$module" -trimpath -ldflags '-s -w' -o "$binary.new" "$package" >&2
    mv "$binary.new" "$binary"
    echo "bench-gateway: $name is ready after $((SECONDS - start)) s" >&2
  fi
  echo "$binary"
}

install
make build PROGRAMS=slipway-gateway >&2
go build -o bin/gatewaybench ./hack/gatewaybench
caddy=$(peer caddy github.com/caddyserver/caddy/v2/cmd/caddy)
traefik=$(peer traefik github.com/traefik/traefik/v3/cmd/traefik)
exec bin/gatewaybench -nginx "$(command -v nginx)" -slipway bin/slipway-gateway -caddy "$caddy" -traefik "$traefik" "$@"
