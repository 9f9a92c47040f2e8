#!/usr/bin/env bash
# Looks at the licences of everything that is linked into the programs of a release.
#
#   hack/licenses.sh check                              refuses a licence that is not in the list below, or not known
#   hack/licenses.sh check FOLDER GOOS PACKAGE...       the same for packages of another module
#   hack/licenses.sh collect FILE GOOS GOARCH PACKAGE   writes the texts that have to travel with a program into one file
#
# What is linked depends on the system, so check looks at every system that a program is released for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

allowed=Apache-2.0,MIT,BSD-2-Clause,BSD-2-Clause-FreeBSD,BSD-3-Clause,ISC,MPL-2.0,CC0-1.0
# CC0 puts a work into the public domain and grants no patent rights. So it is allowed only for the modules named here: the
# hash that the backup engine links.
public_domain='^github\.com/zeebo/blake3,'
go_licenses=$(hack/tool.sh go-licenses)
# Without GOROOT, a tool built with -trimpath takes every package for one of the standard library, and reports no problem.
GOROOT=$(go env GOROOT)
export GOROOT
log=$(mktemp)
texts=$(mktemp -d)
trap 'rm -rf "$log" "$texts"' EXIT

# run runs go-licenses for a system. It shows the output only after a failure: each run warns of every assembler file.
run() {
  local folder=$1 system=$2 architecture=$3
  shift 3
  (cd "$folder" && GOOS=$system GOARCH=$architecture CGO_ENABLED=0 "$go_licenses" "$@") >"$log" 2>&1 && return
  { grep -vE '^W[0-9]{4} |^/.*\.s$' "$log" || cat "$log"; } >&2
  return 1
}

check() {
  local folder=$1 system=$2
  shift 2
  run "$folder" "$system" amd64 check "$@" --allowed_licenses="$allowed" || return 1
  run "$folder" "$system" amd64 report "$@" || return 1
  if grep ',CC0-1.0$' "$log" | grep -vE "$public_domain" >&2; then
    echo "licenses: this is under CC0-1.0, which is allowed for named modules only" >&2
    return 1
  fi
  local found
  found=$(grep -cE '^[^ ,]+,[^,]*,[^ ,]+$' "$log" || true)
  if [[ $found == 0 ]]; then
    echo "licenses: found no licence at all for $*: nothing was looked at" >&2
    return 1
  fi
  echo "licenses: $system: $found licences of what is linked into $*, all allowed"
}

# collect writes the licences and notices in a fixed order, each below the path that it applies to.
collect() {
  local file=$1 system=$2 architecture=$3 package=$4 text
  run . "$system" "$architecture" save "$package" --save_path="$texts/all"
  cp "$(go env GOROOT)/LICENSE" "$texts/go" # the standard library is not a module, so go-licenses does not save its licence
  {
    echo 'This program contains the work of others, under these licences.'
    printf '\n==== Go, its standard library and runtime\n\n'
    cat "$texts/go"
    (cd "$texts/all" && find . -type f -printf '%P\n' | LC_ALL=C sort) | while IFS= read -r text; do
      case $text in
        github.com/slipway-dev/slipway/*) continue ;; # it travels as LICENSE
      esac
      printf '\n==== %s\n\n' "$text"
      cat "$texts/all/$text"
    done
    # The rules are a table that was made of another module, which is not linked.
    printf '\n==== the rules of gitleaks (github.com/zricethezav/gitleaks/v8)\n\n'
    cat internal/redact/gitleaks/LICENSE
    if [[ $package == ./cmd/slipway-monitor ]]; then
      printf '\n==== the web page\n\n'
      cat internal/monitor/web/dist/assets/licences.txt
    fi
  } >"$file"
}

case ${1:-} in
  check)
    shift
    if [[ $# != 0 ]]; then
      check "$@"
      exit
    fi
    check . linux ./cmd/... ./hack/demo
    check . darwin ./cmd/kubectl-slipway
    check . windows ./cmd/kubectl-slipway
    ;;
  collect)
    shift
    collect "$@"
    ;;
  *)
    sed -n '2,8s/^# \?//p' "$0" >&2
    exit 2
    ;;
esac
