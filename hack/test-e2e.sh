#!/usr/bin/env bash
# Runs the end-to-end tests (build tag e2e) on a local cluster of their own, and ends it whatever happens. KEEP=1 leaves it
# running to look at. The tests find in their environment: KUBECONFIG, KUBECTL, IMAGE, DEMO_IMAGE; bin is first in PATH.
#
#   hack/test-e2e.sh [go test flags]
#
# TEST_COUNTS is a file that gets the counts. CLUSTER=existing: see hack/lib.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
name=slipway-test

cleanup() {
  local code=$?
  trap - EXIT INT TERM
  if [[ $code != 0 && -n ${testing:-} ]]; then
    "$KUBECTL" get slipway,pods -A >&2 || true
    diagnose slipway-system
  fi
  if [[ $CLUSTER == local && -z ${KEEP:-} && -x bin/localkube ]]; then
    bin/localkube down --name "$name" || code=1
  fi
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build_images
make --no-print-directory build bin/testsum
start_cluster "$name"
install_operator

say 'running the tests'
testing=1
export IMAGE DEMO_IMAGE PATH=$PWD/bin:$(dirname "$(command -v "$KUBECTL")"):$PATH
hack/test-tagged.sh e2e -count=1 -timeout 30m "$@" | bin/testsum -each -counts "${TEST_COUNTS:-/dev/null}"
say 'done'
