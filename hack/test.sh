#!/usr/bin/env bash
# Runs the suites of `make test`. A suite that mostly waits runs in the background of suites that compute. Nothing runs in the
# background of suites that measure. With `make -k` every suite runs, even when one before it failed.
#
# The output of a suite in the background goes to a file, and is printed when the suite has ended.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
beside= # the process in the background
failed=0
flags=${MAKEFLAGS:-}
trap 'if [[ -n $beside ]]; then kill -- "-$beside" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# go_on tells whether to run the next suite.
go_on() { [[ $failed == 0 || ${flags%% *} == *k* ]]; }

# start COMMAND... runs a command in the background, until join. It is a process group of its own, so that an interrupt ends
# all of it.
start() {
  setsid "$@" >"$work/log" 2>&1 &
  beside=$!
}

# run TARGET... runs suites one after the other.
run() {
  local target
  for target in "$@"; do
    if go_on; then make "$target" || failed=1; fi
  done
}

join() {
  wait "$beside" || failed=1
  beside=
  cat "$work/log"
}

# The local cluster waits for its programs and pods, and measures nothing.
start make test-localkube
run test-go
join

# The end-to-end tests and the sample of the faults measure how soon something happens, so nothing runs beside them.
run test-fuzz-sample test-h2spec test-helm test-e2e test-fault-sample
exit "$failed"
