#!/usr/bin/env bash
# Runs the whole of test-go beside processes that do nothing but use a processor: no test's verdict may depend on how fast
# the machine is. Each round runs, also after one that failed.
#
#   hack/test-loaded.sh BUSY ROUNDS
#
# The busy processes end with this script, also when it is interrupted, and by themselves when it was killed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
busy=${1:?usage: hack/test-loaded.sh BUSY ROUNDS}
rounds=${2:?usage: hack/test-loaded.sh BUSY ROUNDS}

# Each job is a process group of its own, so that an interrupt ends all of it.
set -m
jobs=()
finish() {
  local job
  for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null || true; done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# keep_busy uses a processor for as long as a process lives, which it looks for now and then.
keep_busy() {
  trap - EXIT INT TERM
  local i
  while kill -0 "$1" 2>/dev/null; do
    for ((i = 0; i < 100000; i++)); do :; done
  done
}

for ((i = 0; i < busy; i++)); do
  keep_busy $$ &
  jobs+=($!)
done

failed=0
for ((round = 1; round <= rounds; round++)); do
  echo "test-loaded: round $round of $rounds, beside $busy busy processes"
  make test-go </dev/null &
  jobs[busy]=$!
  wait "$!" || failed=$((failed + 1))
done
unset 'jobs[busy]'
if [[ $failed != 0 ]]; then
  echo "test-loaded: $failed of $rounds rounds failed"
  exit 1
fi
echo "test-loaded: $rounds rounds passed"
