#!/usr/bin/env bash
# Builds the last commit's release twice and tests it (hack/release/dist*_test.go, docs/dev/release.md). Arguments go to `go test`.
# FRESH=1 lets the second build compile everything again. The tools with which users check a release come from Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=()
for pair in qemu-aarch64-static:qemu-user-static skopeo:skopeo openssl:openssl; do
  command -v "${pair%:*}" >/dev/null || packages+=("${pair#*:}")
done
if [[ ${#packages[@]} != 0 ]]; then
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "test-dist: please install: ${packages[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2
  apt-get install -q -y --no-install-recommends "${packages[@]}" >&2
fi

if [[ -n $(git status --porcelain) ]]; then
  echo 'test-dist: what is not committed is not tested' >&2
fi
make --no-print-directory bin/testsum
go -C hack/release test -tags disttest -json -count=1 -timeout 90m -run "^($(
  grep -hoE '^func Test[A-Za-z]+' hack/release/dist*_test.go | grep -v TestMain | awk '{ print $2 }' | paste -sd'|'
))\$" "$@" . | bin/testsum -counts "${TEST_COUNTS:-/dev/null}"
