#!/usr/bin/env bash
# Measures slipway-backup beside the bare engine and restic (docs/performance.md). Arguments go to hack/backupbench.
#
# restic comes from Debian where it is missing. RESTIC= names another program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
restic=${RESTIC:-restic}

if ! command -v "$restic" >/dev/null; then
  if [[ -n ${RESTIC:-} || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "bench-backup: $restic is missing: please install restic, or name one with RESTIC=" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2
  apt-get install -q -y --no-install-recommends restic >&2
fi

make build PROGRAMS=slipway-backup >&2
CGO_ENABLED=0 go build -trimpath -o bin/backupbench ./hack/backupbench
exec bin/backupbench -slipway bin/slipway-backup -restic "$restic" "$@"
