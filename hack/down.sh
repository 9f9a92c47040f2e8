#!/usr/bin/env bash
# Undoes hack/up.sh: ends the local cluster, or takes the demo, its gateway and the operator out of an existing one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
name=${CLUSTER_NAME:-slipway}

if [[ $CLUSTER == local ]]; then
  make --no-print-directory bin/localkube
  bin/localkube down --name "$name"
  say "the local cluster $name is gone"
  exit 0
fi

find_kubectl
if "$KUBECTL" get crd webapps.slipway.dev >/dev/null 2>&1; then
  say 'removing the demo'
  "$KUBECTL" delete -n demo -f config/samples/s3.yaml --ignore-not-found --wait
  "$KUBECTL" delete -f config/samples/demo.yaml --ignore-not-found --wait
  "$KUBECTL" delete -k config/monitor/rules --ignore-not-found --wait
  others=$("$KUBECTL" get slipway -A -o name)
  if [[ -n $others ]]; then
    die "the cluster has other Slipway objects, and deleting the CRDs would delete them with everything they run:
$others"
  fi
fi
say 'removing the operator'
"$KUBECTL" delete -k config/default --ignore-not-found --wait
say 'done'
