#!/usr/bin/env bash
# Opens the web page of the monitor in Debian's chromium-headless-shell, and looks at it with axe-core. Prints what
# `go test -json` prints. IMAGES=docs/images writes the images of docs/monitor-page.md.
#
#   hack/test-page.sh [go test flags]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v chromium-headless-shell >/dev/null; then
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo 'test-page: please install chromium-headless-shell' >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -q -y --no-install-recommends chromium-headless-shell >&2 ||
    { apt-get update -q >&2 && apt-get install -q -y --no-install-recommends chromium-headless-shell >&2; }
fi
if [[ -n ${IMAGES:-} ]]; then
  mkdir -p "$IMAGES"
  IMAGES=$(cd "$IMAGES" && pwd)
fi
CHROMIUM=$(command -v chromium-headless-shell) AXE=$(hack/web.sh modules)/axe-core/axe.min.js IMAGES=${IMAGES:-} \
  exec hack/test-tagged.sh pagetest -count=1 "$@"
