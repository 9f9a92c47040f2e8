#!/usr/bin/env bash
# Runs the suites of `make test` one after the other: the end-to-end tests and the sample of the faults measure how soon something
# happens, so nothing runs beside them. With `make -k` every suite runs, even when one before it failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0
flags=${MAKEFLAGS:-}

# go_on tells whether to run the next suite.
go_on() { [[ $failed == 0 || ${flags%% *} == *k* ]]; }

for suite in test-go test-fuzz-sample test-h2spec test-helm test-monitor-oracle test-conformance-core test-e2e test-fault-sample; do
  if ! go_on; then break; fi
  start=$SECONDS
  make "$suite" || failed=1
  echo "$suite took $((SECONDS - start)) s"
done
exit "$failed"
