#!/usr/bin/env bash
# Attacks the gateway with real servers behind it and in front of it (docs/dev/gateway-attacks.md), and prints the results.
# Arguments go to `go test`. Everything runs on loopback. The tests start the servers; no service is used.
#
# The servers come from Debian. While a package is installed, it may not start its service.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/sbin # where Debian has nginx, apache2 and haproxy

# missing prints the packages of servers that are not there.
missing() {
  local pair
  for pair in nginx:nginx apache2:apache2 haproxy:haproxy; do
    command -v "${pair%:*}" >/dev/null || echo "${pair#*:}"
  done
  command -v node nodejs >/dev/null || echo nodejs
  if [[ ! -e /usr/share/tomcat10/bin/bootstrap.jar ]] || ! command -v java >/dev/null; then
    echo tomcat10
    command -v java >/dev/null || echo default-jre-headless
  fi
}

# install installs packages without starting or enabling what they bring.
install() {
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "gateway-attack: please install: $*" >&2
    exit 1
  fi
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d # nothing may be started
    chmod +x /usr/sbin/policy-rc.d
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2
  apt-get install -q -y --no-install-recommends "$@" >&2
  local unit
  for unit in nginx apache2 haproxy tomcat10; do
    if [[ -d /run/systemd/system && " $* " == *" $unit "* ]]; then systemctl disable -q "$unit"; fi
  done
}

mapfile -t packages < <(missing)
if [[ ${#packages[@]} != 0 ]]; then install "${packages[@]}"; fi

table=$PWD/bin/gateway-attacks.md
mkdir -p bin
rm -f "$table"
make bin/testsum
code=0
GATEWAY_ATTACK_TABLE=$table hack/test-tagged.sh attack -count=1 -timeout 20m "$@" | bin/testsum -counts "${TEST_COUNTS:-/dev/null}" || code=$?
if [[ -e $table ]]; then cat "$table"; fi
exit "$code"
