#!/usr/bin/env bash
# Runs only those tests of the main module that are in files with a build tag, so that the tests of `make test-unit` are not
# run and counted again. Prints what `go test -json` prints.
#
#   hack/test-tagged.sh TAG [go test flags]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=${1:?usage: hack/test-tagged.sh TAG [go test flags]}
shift

others=$(hack/modules.sh | grep -vx '[.]' | paste -sd'|')
files=$(git ls-files --cached --others --exclude-standard '*_test.go' | grep -vE "^($others)/" |
  while IFS= read -r file; do if [[ -f $file ]]; then echo "$file"; fi; done |
  xargs -r grep -lE "^//go:build .*\b$tag\b" || true)
if [[ -z $files ]]; then
  echo "hack/test-tagged.sh: no test file has the build tag $tag" >&2
  exit 1
fi
packages=$(xargs -n1 dirname <<<"$files" | sort -u | sed 's|^|./|')
tests=$(xargs grep -hoE '^func (Test|Example|Fuzz)[A-Z_0-9][A-Za-z_0-9]*' <<<"$files" | awk '{ print $2 }' |
  grep -vx TestMain | sort -u | paste -sd'|')

# A -run among the flags comes later and wins.
exec go test -json -tags "$tag" -run "^($tests)\$" "$@" $packages
