#!/usr/bin/env bash
# A quick look at what has changed, for while one works: format and lint of the changed packages, what is generated of what
# has changed, the pages, and the tests of the changed packages. It takes the result of a test from Go's cache where nothing
# that the test reads has changed. `make verify` and `make test` look at everything.
#
# What has changed is what is not committed, or else the last commit. BASE names another commit to compare with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset FULL # what has changed is looked at, and nothing else
failed=()

# step NAME COMMAND... runs one step, says how long it took, and remembers whether it failed.
step() {
  local name=$1 start=$SECONDS
  shift
  "$@" || failed+=("$name")
  echo "check: $name took $((SECONDS - start)) s"
}

if [[ -z ${BASE:-} ]]; then
  BASE=HEAD
  if [[ -z $(git status --porcelain) ]]; then BASE=HEAD~1; fi
fi
export BASE

# lines_of NAME COMMAND... reads the lines that a command prints into an array, and ends the script when the command fails.
lines_of() {
  local -n into=$1
  local text
  text=$("${@:2}")
  into=()
  if [[ -n $text ]]; then mapfile -t into <<<"$text"; fi
}

# differ prints the files that differ, deleted and untracked ones too.
differ() {
  git diff --name-only --no-renames "$BASE"
  git ls-files --others --exclude-standard
}

files=() packages=() tested=() go_files=()
lines_of files differ
lines_of packages bin/affected -changed
lines_of tested bin/affected -changed -tests
for file in ${files[@]+"${files[@]}"}; do
  if [[ -f $file && $file == *.go && $file != *zz_generated* && $file != pkg/client/* ]]; then go_files+=("$file"); fi
done
echo "check: ${#files[@]} files and ${#packages[@]} packages of the main module differ from $BASE"

# changed reports whether a file has changed whose name the expression matches.
changed() { printf '%s\n' ${files[@]+"${files[@]}"} | grep -E "$1" >/dev/null; }

# is_generated_of_it reports whether something is generated of what has changed: of the API, of config, of markers, of metrics and
# of what is healthy.
is_generated_of_it() {
  changed '^(api|config|charts|internal/health|internal/monitor/web)/|^VERSION$|^hack/(generate\.sh|archdoc/|chart/|healthdoc/|metricsdoc/|people/|generated/)|metric|/(kind|budget|cache)\.go$' ||
    git diff "$BASE" -- '*.go' | grep -E '^[+-].*//( \+kubebuilder:|go:generate )' >/dev/null
}

format() {
  local wrong
  wrong=$("$(hack/tool.sh gofumpt)" -l "${go_files[@]}") || return 1
  if [[ -n $wrong ]]; then
    echo "check: make fmt formats $wrong" >&2
    return 1
  fi
}

# generate fails when that has changed a file.
generate() {
  local before
  before=$(git diff HEAD | sha256sum)
  make generate || return 1
  if [[ $(git diff HEAD | sha256sum) != "$before" ]]; then
    echo 'check: make generate has changed files; look at them' >&2
    return 1
  fi
}

lint() { "$(hack/tool.sh golangci-lint)" run --config .golangci.yml "${packages[@]}"; }

# The flags are those of `make test-go`, so that both share what they compile.
tests() {
  KUBEBUILDER_ASSETS=$(bin/localkube assets) go test -race -json -tags apitest,testing -timeout 25m -p 4 "${tested[@]}" | bin/testsum
}

if [[ ${#go_files[@]} != 0 ]]; then step format format; fi
if is_generated_of_it; then step generate generate; fi
if changed '\.md$'; then step docs hack/docs.sh; fi
if [[ ${#packages[@]} != 0 ]]; then step lint lint; fi
if [[ ${#tested[@]} != 0 ]]; then step tests tests; fi

if [[ ${#failed[@]} != 0 ]]; then
  echo "check: failed after $SECONDS s: ${failed[*]}"
  exit 1
fi
echo "check: passed after $SECONDS s"
