#!/usr/bin/env bash
# The gate, in three phases: generate and format files, check everything else, and then fail when a file has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

phase() {
  local name=$1 start=$SECONDS
  shift
  echo "verify: $name"
  "$@"
  echo "verify: $name took $((SECONDS - start)) s"
}

phase generate make generate
phase tidy make tidy
phase fmt make fmt
phase lint make lint
phase vuln make vuln
# What is larger than docs/dev/coding.md allows has not grown, and package comments list the files that there are.
phase shape make shape
# Every kind has the same files, and is registered in every place that lists kinds: docs/dev/add-a-kind.md.
phase rooms go test ./internal/controller
phase docs hack/docs.sh
phase licenses make licenses
phase web make web

changed=$(git diff --name-only HEAD)
untracked=$(git ls-files --others --exclude-standard)
if [[ -n $changed || -n $untracked ]]; then
  {
    echo
    echo 'verify: the tree is not clean. Either generated files or formatting are out of date, or there is work to commit.'
    if [[ -n $changed ]]; then
      echo 'verify: changed against HEAD:'
      printf '  %s\n' $changed
      git --no-pager diff --stat HEAD
    fi
    if [[ -n $untracked ]]; then
      echo 'verify: not tracked:'
      printf '  %s\n' $untracked
    fi
    echo 'verify: look at the difference, commit it, and run `make verify` again.'
  } >&2
  exit 1
fi
echo 'verify: all is well'
