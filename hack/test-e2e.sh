#!/usr/bin/env bash
# Runs the tests of a suite that needs real pods on a local cluster of their own. The cluster ends with the run, also when
# tests fail. KEEP=1 leaves it running to look at, and the next run from the same checkout uses it again. A cluster of that
# name which this checkout did not start is refused and never touched. CLUSTER_NAME names another; the default is
# slipway-test, or slipway-SUITE for another suite than e2e.
#
# The tests find in their environment: KUBECONFIG, KUBECTL, IMAGE, GATEWAY_IMAGE, BACKUP_IMAGE, MONITOR_IMAGE, DEMO_IMAGE,
# S3_IMAGE, ECHO_IMAGE; bin is first in PATH.
# This script installs the operator. The tests of chartcluster install it themselves, with HELM and what is in OLD_RELEASE.
#
# Those of postgres find POSTGRES_IMAGE, too.
#
#   hack/test-e2e.sh SUITE [go test flags]
#
# SUITE is the build tag of the tests: e2e, chaos, change, csi, chartcluster, conformance, neighbours, peers or postgres. For csi the cluster
# gets CSI volumes: hack/csi.sh. For peers it gets other implementations of the Gateway API: hack/peers.sh. For conformance it gets
# the CRDs of the Gateway API: hack/conformance.sh. RUN, CORE, PROFILE, CHANNEL and WAIT are for that suite alone:
# docs/dev/gateway-conformance.md.
# AREA, for e2e, is a list with commas: apps, backups, gateways, monitor. Tests of other areas are skipped; what status says of every
# fault (test/truth) is tried with each. SKIP is a regular expression of more tests to skip.
# TEST_COUNTS is a file that gets the counts. CLUSTER=existing: see hack/lib.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
source hack/peers.sh
suite=${1:?usage: hack/test-e2e.sh SUITE [go test flags]}
shift
case $suite in
  e2e) name=${CLUSTER_NAME:-slipway-test} ;;
  *) name=${CLUSTER_NAME:-slipway-$suite} ;;
esac
state=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/e2e
owner=$state/$name.owner # holds the checkout that started the cluster
ours=                    # set once the cluster is known to be ours to end

# keep_logs saves the logs of the control plane and the kubelet, which are removed with the cluster.
keep_logs() {
  rm -rf "bin/logs/$suite" && mkdir -p bin/logs && cp -r "$(bin/localkube logs --name "$name")" "bin/logs/$suite" &&
    echo "---- the logs of the cluster's programs are in bin/logs/$suite" >&2
}

cleanup() {
  local code=$?
  trap - EXIT INT TERM
  if [[ $code != 0 && -n ${testing:-} ]]; then
    "$KUBECTL" get slipway,pods -A >&2 || true
    diagnose slipway-system
  fi
  if [[ $code != 0 && -n $ours ]]; then keep_logs || true; fi
  if [[ -n $ours && -z ${KEEP:-} ]]; then
    if bin/localkube down --name "$name"; then rm -f "$owner"; else code=1; fi
  fi
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# claim makes sure that the cluster is ours, before anything is done to it.
claim() {
  make --no-print-directory bin/localkube
  mkdir -p "$state"
  exec 8>"$state/$name.lock"
  flock -n 8 || die "another run uses the local cluster $name; wait for it, or name another with CLUSTER_NAME"
  # A run that was killed leaves a dead cluster, which nobody uses.
  bin/localkube down --leftover --name "$name" 2>/dev/null || true
  if [[ -e $(bin/localkube kubeconfig --name "$name" 2>/dev/null || true) ]] || bin/localkube status --name "$name" >/dev/null 2>&1; then
    [[ -f $owner && $(<"$owner") == "$PWD" ]] ||
      die "a local cluster $name exists, and this checkout did not start it. Name another with CLUSTER_NAME, or, when nobody needs it, end it: bin/localkube down --name $name"
  fi
  echo "$PWD" >"$owner"
  ours=1
}

# load_echo gives the cluster hack/echo, the backend that speaks every protocol. It is no part of a release.
load_echo() {
  if [[ $CLUSTER == existing ]]; then return; fi # ECHO_IMAGE names it, or the tests that need it are skipped
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o bin/slipway-echo ./hack/echo
  ECHO_IMAGE=slipway-echo:dev-$(sha256sum bin/slipway-echo | cut -c1-12)
  bin/image build --binary bin/slipway-echo --tag "$ECHO_IMAGE" --output bin/slipway-echo.tar
  bin/localkube load --name "$name" bin/slipway-echo.tar
}

# load_postgres gives the cluster an image of PostgreSQL, made of Debian packages. It is no part of a release.
load_postgres() {
  if [[ $CLUSTER == existing ]]; then
    [[ -n ${POSTGRES_IMAGE:-} ]] || die 'the suite postgres needs POSTGRES_IMAGE (hack/debian-image.sh postgres makes it)'
    return
  fi
  POSTGRES_IMAGE=$(hack/debian-image.sh postgres)
  bin/localkube load --name "$name" bin/debian/postgres.tar
  hack/csi.sh "$name" # volumes that can be snapshotted
}

# find_releases sets HELM and OLD_RELEASE, for the tests of the chart.
find_releases() {
  [[ $CLUSTER == local ]] || die 'the tests of the chart install releases, so they need a local cluster'
  HELM=$(hack/tool.sh helm)
  OLD_RELEASE=$(hack/old-release.sh --images)
  export HELM OLD_RELEASE
}

# area_of prints the area of a file with tests of e2e, which its name tells. Those of test/truth are of all.
area_of() {
  case $1 in
    test/truth/*) ;;
    test/change/* | test/e2e/gateway*) echo gateways ;;
    test/e2e/backup*) echo backups ;;
    test/e2e/monitor*) echo monitor ;;
    *) echo apps ;;
  esac
}

# elsewhere prints the tests of the areas that AREA does not name, with | between them.
elsewhere() {
  local file area names=()
  for file in $(git ls-files --cached --others --exclude-standard 'test/*_test.go' | xargs grep -lE '^//go:build .*\be2e\b'); do
    area=$(area_of "$file")
    if [[ -z ${AREA:-} || -z $area || ,$AREA, == *",$area,"* ]]; then continue; fi
    mapfile -t -O "${#names[@]}" names < <(sed -nE 's/^func (Test[A-Z0-9_][A-Za-z0-9_]*)\(.*/\1/p' "$file" | grep -vx TestMain)
  done
  (IFS='|' && echo "${names[*]}")
}

# run_conformance prints what go test -json prints. The suite is a module of its own.
run_conformance() {
  local network flags=(-disable-parallel-tests -channel="${CHANNEL:-experimental}" -only="${RUN:-}"
    -wait="${WAIT:-0}" -reports="$PWD/bin/conformance" -version="${VERSION:-$(git describe --tags --always --dirty)}")
  if [[ -n ${CORE:-} ]]; then flags+=(-core); fi
  if [[ -n ${PROFILE:-} ]]; then flags+=(-conformance-profiles="$PROFILE"); fi
  if [[ -n ${KEEP:-} ]]; then flags+=(-cleanup-base-resources=false); fi
  if [[ $CLUSTER == local ]]; then
    # An address that a Gateway may ask for, and one that nobody can give it.
    network=$(bin/localkube status --name "$name" | sed -nE 's/.*load balancers ([0-9]+\.[0-9]+)\..*/\1/p')
    flags+=(-usable-address="$network.31.250" -unusable-address=192.0.2.1)
  fi
  go -C test/conformance test -json -tags conformance -count=1 -timeout 3h -run '^TestConformance$' . "${flags[@]}" "$@"
}

# Nothing is started for tests that do not exist.
grep -rqsE "^//go:build .*\b$suite\b" test || die "there are no tests for $suite"
if [[ $suite == chartcluster ]]; then find_releases; fi
if [[ $CLUSTER == local ]]; then claim; fi
build_images
make --no-print-directory build bin/testsum
start_cluster "$name"
if [[ $suite != conformance ]]; then load_echo; fi
if [[ $suite == postgres ]]; then load_postgres; fi
if [[ $suite == peers ]]; then
  [[ $CLUSTER == local ]] || die 'the peers are installed with every right, so they need a local cluster'
  load_peers "$name"
fi
if [[ $suite == csi ]]; then
  [[ $CLUSTER == local ]] || die 'the tests of CSI snapshots look into the local cluster'
  hack/csi.sh "$name"
fi
if [[ $suite == conformance && $CLUSTER == local ]]; then hack/conformance.sh "$name"; fi
# Before the operator starts: it looks for kinds that are missing once a minute.
if [[ $suite =~ ^(e2e|change|peers)$ && $CLUSTER == local ]]; then install_gateway_api . experimental; fi
if [[ $suite == chartcluster ]]; then
  bin/localkube load --name "$name" "$OLD_RELEASE"/images/*.tar
else
  install_operator
fi

say 'running the tests'
testing=1
export IMAGE GATEWAY_IMAGE BACKUP_IMAGE MONITOR_IMAGE DEMO_IMAGE S3_IMAGE ECHO_IMAGE=${ECHO_IMAGE:-} POSTGRES_IMAGE=${POSTGRES_IMAGE:-} PATH=$PWD/bin:$(dirname "$(command -v "$KUBECTL")"):$PATH
# Most of the time a test waits for pods, so more tests run at a time than the machine has cores. Not many more: starting a
# pod takes half a second of processor time or more on a virtual machine. Packages run one by one.
tests=(hack/test-tagged.sh "$suite" -count=1 -p 1 -timeout 30m -parallel 4)
if [[ $suite == conformance ]]; then tests=(run_conformance); fi
if [[ $suite == e2e ]]; then
  others=$(elsewhere)
  skip=${SKIP:-}${SKIP:+${others:+|}}${others:+^($others)\$}
  if [[ -n $skip ]]; then tests+=(-skip "$skip"); fi
fi
"${tests[@]}" "$@" | bin/testsum -each -counts "${TEST_COUNTS:-/dev/null}"
say 'done'
