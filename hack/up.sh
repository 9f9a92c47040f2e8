#!/usr/bin/env bash
# Brings up a cluster with the operator, a demo application and a gateway in front of it, and shows that both answer. Another
# application keeps notes on a volume, which is backed up to an S3 server on the cluster. CLUSTER, KUBECONFIG, IMAGE and the
# other images: see hack/lib.sh. `make down` undoes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
name=${CLUSTER_NAME:-slipway}

# answers URL shows the line to try, and tries it.
answers() {
  echo "  curl $1"
  curl -fsS --max-time 5 --retry 5 --retry-all-errors --retry-delay 1 "$1" | sed 's/^/    /' ||
    die "$1 does not answer"
}

# answers_through_api PATH does the same through the API server, where pods cannot be reached from here.
answers_through_api() {
  echo "  $KUBECTL get --raw $1"
  "$KUBECTL" get --raw "$1" | sed 's/^/    /' || die "$1 does not answer"
}

# back_up writes a note, has a copy made of the volume, and waits until it was read back.
back_up() {
  local run
  "$KUBECTL" rollout status deployment/s3 -n demo --timeout=120s >/dev/null || die 'the S3 server did not become ready'
  "$KUBECTL" create --raw "/api/v1/namespaces/demo/services/notes:8080/proxy/notes" -f - <<<'Slipway keeps this.' >/dev/null ||
    die 'the application takes no notes'
  run=$("$KUBECTL" create -o name -f - <<YAML
apiVersion: slipway.dev/v1alpha1
kind: BackupRun
metadata: {generateName: notes-data-, namespace: demo}
spec: {backup: notes-data}
YAML
  )
  if ! "$KUBECTL" wait --for=condition=Ready "$run" -n demo --timeout=180s; then
    "$KUBECTL" get "$run" -n demo -o yaml >&2 || true
    diagnose demo
    die 'the backup did not complete'
  fi
  "$KUBECTL" wait --for=condition=Ready backups.slipway.dev/notes-data -n demo --timeout=60s >/dev/null || die 'the Backup is not ready'
}

build_images
start_cluster "$name"
install_operator

say "applying config/samples/demo.yaml, image $DEMO_IMAGE"
sed "s|slipway-demo:dev|$DEMO_IMAGE|" config/samples/demo.yaml | "$KUBECTL" apply --server-side -f -
sed "s|versitygw:dev|$S3_IMAGE|" config/samples/s3.yaml | "$KUBECTL" apply --server-side -n demo -f -
for object in webapp/demo apigateway/edge webapp/notes; do
  if ! "$KUBECTL" wait --for=condition=Ready "$object" -n demo --timeout=180s; then
    "$KUBECTL" get "$object" -n demo -o yaml >&2 || true
    diagnose demo
    die "$object did not become ready"
  fi
done

if [[ -n $MONITOR_IMAGE ]]; then
  if ! "$KUBECTL" rollout status statefulset/slipway-monitor -n slipway-system --timeout=120s; then
    diagnose slipway-system
    die 'the monitor did not become ready'
  fi
  say 'applying the rules that come with the monitor'
  "$KUBECTL" apply --server-side -k config/monitor/rules
fi

say 'backing up the volume of the application "notes"'
back_up

say 'this runs:'
"$KUBECTL" get slipway -A
echo
port=$("$KUBECTL" get webapp demo -n demo -o jsonpath='{.spec.port}')
if [[ $CLUSTER == local ]]; then
  echo 'A pod answers:'
  pod_ip=$("$KUBECTL" get pods -n demo -l slipway.dev/webapp=demo --field-selector status.phase=Running -o jsonpath='{.items[0].status.podIP}')
  answers "http://$pod_ip:$port/"
  echo 'Its Service answers:'
  service=$("$KUBECTL" get service demo -n demo -o jsonpath='{.spec.clusterIP}:{.spec.ports[0].port}')
  answers "http://$service/"
  echo 'It answers through the gateway:'
  gateway=$("$KUBECTL" get service edge -n demo -o jsonpath='{.spec.clusterIP}')
  answers "http://$gateway/"
else
  echo 'A pod answers:'
  pod=$("$KUBECTL" get pods -n demo -l slipway.dev/webapp=demo --field-selector status.phase=Running -o jsonpath='{.items[0].metadata.name}')
  answers_through_api "/api/v1/namespaces/demo/pods/$pod:$port/proxy/"
  echo 'Its Service answers:'
  service_port=$("$KUBECTL" get service demo -n demo -o jsonpath='{.spec.ports[0].port}')
  answers_through_api "/api/v1/namespaces/demo/services/demo:$service_port/proxy/"
  echo 'It answers through the gateway:'
  answers_through_api "/api/v1/namespaces/demo/services/edge:80/proxy/"
fi

echo 'The volume of the application "notes" is backed up, and the copy was read back:'
"$KUBECTL" get backups.slipway.dev notes-data -n demo
"$KUBECTL" get backuprun -n demo

if [[ -n $MONITOR_IMAGE ]]; then
  echo 'The monitor records every change of every custom resource. It may read:'
  "$KUBECTL" get clusterrole slipway-monitor-kinds -o jsonpath='{range .rules[*]}  {.apiGroups[0]}: {.resources}{"\n"}{end}'
fi

cat <<TXT

To work with the cluster:
  export KUBECONFIG=$KUBECONFIG
  export PATH=$PWD/bin:$(dirname "$(command -v "$KUBECTL")"):\$PATH
  kubectl get slipway -A
  kubectl slipway status webapp/demo -n demo
  kubectl slipway backup ls notes-data -n demo
  kubectl slipway restore notes-data -n demo --to notes-again --create 100Mi --wait
TXT
if [[ -n $MONITOR_IMAGE ]]; then
  cat <<TXT
  kubectl slipway changes --since 1h -n demo --monitor-account demo/viewer
  kubectl slipway ui --monitor-account demo/viewer     # prints the address of the monitor's page
TXT
fi
say "done; \`make down${CLUSTER_NAME:+ CLUSTER_NAME=$CLUSTER_NAME}\` undoes it"
