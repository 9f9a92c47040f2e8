# Shared by the scripts that work on a cluster: hack/up.sh, hack/down.sh, hack/test-e2e.sh. To be sourced, from the root.
#
# CLUSTER=local (default) is a cluster that hack/localkube runs on this machine; CLUSTER=existing is the one that KUBECONFIG
# names, which must be able to pull IMAGE (the operator), GATEWAY_IMAGE (the gateway), BACKUP_IMAGE (slipway-backup),
# MONITOR_IMAGE (the monitor), DEMO_IMAGE (the demo) and S3_IMAGE (an S3 server, versitygw).

CLUSTER=${CLUSTER:-local}
SECONDS=0

# say prints what happens, with the time since the start.
say() { printf '[%3d s] %s\n' "$SECONDS" "$*"; }

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

case $CLUSTER in
  local) ;;
  existing) [[ -n ${KUBECONFIG:-} ]] || die 'CLUSTER=existing needs KUBECONFIG to name the cluster' ;;
  *) die "CLUSTER is $CLUSTER; it must be local or existing" ;;
esac

# build_once MODULE PACKAGE PROGRAM prints the path of a program that only tests need. It is built when it is not in the cache
# yet: as the module's files say, or, when the package is another module's, as go.mod and go.sum say.
build_once() {
  local module=$1 package=$2 program=$3 files=(-name go.mod -o -name go.sum) hash folder
  if [[ $package == . ]]; then files=(-type f); fi
  hash=$( (find "$module" "${files[@]}" | LC_ALL=C sort | xargs -d '\n' cat; go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-16)
  folder=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/programs/$hash
  if [[ ! -x $folder/$program ]]; then
    mkdir -p "$folder"
    say "building $program (once)" >&2
    CGO_ENABLED=0 go build -C "$module" -trimpath -buildvcs=false -ldflags '-s -w' -o "$folder/$program.new" "$package" >&2
    mv "$folder/$program.new" "$folder/$program"
  fi
  echo "$folder/$program"
}

# build_images sets IMAGE, GATEWAY_IMAGE, BACKUP_IMAGE, MONITOR_IMAGE, DEMO_IMAGE and S3_IMAGE, after building them for a local cluster.
build_images() {
  if [[ $CLUSTER == existing ]]; then
    [[ -n ${IMAGE:-} && -n ${GATEWAY_IMAGE:-} && -n ${BACKUP_IMAGE:-} && -n ${MONITOR_IMAGE:-} && -n ${DEMO_IMAGE:-} && -n ${S3_IMAGE:-} ]] ||
      die 'CLUSTER=existing needs IMAGE, GATEWAY_IMAGE, BACKUP_IMAGE, MONITOR_IMAGE, DEMO_IMAGE and S3_IMAGE: names of images that the cluster can pull (make images builds archives of them)'
    return
  fi
  say 'building programs and images'
  make --no-print-directory images
  IMAGE=$(<bin/images/slipway-operator.tag)
  GATEWAY_IMAGE=$(<bin/images/slipway-gateway.tag)
  BACKUP_IMAGE=$(<bin/images/slipway-backup.tag)
  MONITOR_IMAGE=$(cat bin/images/slipway-monitor.tag 2>/dev/null || true)
  DEMO_IMAGE=$(<bin/images/slipway-demo.tag)
  S3_IMAGE=$(<bin/images/versitygw.tag)
}

# start_cluster NAME makes sure that a cluster runs and has the images, and sets KUBECONFIG and KUBECTL for it.
start_cluster() {
  local name=$1
  if [[ $CLUSTER == local ]]; then
    make --no-print-directory bin/localkube
    say "starting the local cluster $name"
    bin/localkube up --name "$name"
    KUBECONFIG=$(bin/localkube kubeconfig --name "$name")
    say 'loading images'
    bin/localkube load --name "$name" bin/images/{slipway-operator,slipway-gateway,slipway-backup,slipway-demo,versitygw}.tar \
      ${MONITOR_IMAGE:+bin/images/slipway-monitor.tar}
  fi
  export KUBECONFIG
  find_kubectl
}

# find_kubectl sets KUBECTL: the one that belongs to the local cluster, or the user's own.
find_kubectl() {
  if [[ $CLUSTER == existing ]] && command -v kubectl >/dev/null; then
    KUBECTL=kubectl
  else
    make --no-print-directory bin/localkube
    KUBECTL=$(bin/localkube assets)/kubectl
  fi
  export KUBECTL
}

# write_overlay makes bin/local: config/default, with the images of the operator, of its gateways, of its backups and of the monitor replaced,
# and with the right to run hooks of Backups.
write_overlay() {
  mkdir -p bin/local
  cat >bin/local/kustomization.yaml <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../config/default
components:
  - ../../config/backup-hooks
patches:
  - target: {kind: Deployment, name: slipway-operator}
    patch: |
      - op: replace
        path: /spec/template/spec/containers/0/image
        value: "$IMAGE"
      - op: test # arguments have no names: check that this is the one to replace
        path: /spec/template/spec/containers/0/args/3
        value: --gateway-image=slipway-gateway:dev
      - op: replace
        path: /spec/template/spec/containers/0/args/3
        value: "--gateway-image=$GATEWAY_IMAGE"
      - op: test
        path: /spec/template/spec/containers/0/args/4
        value: --backup-image=slipway-backup:dev
      - op: replace
        path: /spec/template/spec/containers/0/args/4
        value: "--backup-image=$BACKUP_IMAGE"
YAML
  if [[ -n $MONITOR_IMAGE ]]; then
    cat >>bin/local/kustomization.yaml <<YAML
  - target: {kind: StatefulSet, name: slipway-monitor}
    patch: |
      - op: replace
        path: /spec/template/spec/containers/0/image
        value: "$MONITOR_IMAGE"
YAML
  else # a checkout without the program
    cat >>bin/local/kustomization.yaml <<YAML
  - target: {kind: StatefulSet, name: slipway-monitor}
    patch: |
      \$patch: delete
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: slipway-monitor, namespace: slipway-system}
YAML
  fi
}

# install_gateway_api MODULE CHANNEL gives the cluster the CRDs of the Gateway API that a module requires. The policy that refuses
# changes of channel and version is left out: it is no kind.
install_gateway_api() {
  local folder files=() file
  go mod download -C "$1" sigs.k8s.io/gateway-api
  folder=$(go list -C "$1" -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/$2
  for file in "$folder"/gateway.networking.*.yaml; do
    case $file in
      *_vap_safeupgrades.yaml) ;;
      *) files+=(-f "$file") ;;
    esac
  done
  "$KUBECTL" apply --server-side "${files[@]}" >/dev/null
  "$KUBECTL" wait --for=condition=Established crd --all --timeout=60s >/dev/null
}

# install_operator installs what a user would install, and waits until it works.
install_operator() {
  say "installing the operator, image $IMAGE"
  write_overlay
  "$KUBECTL" apply --server-side -k bin/local
  "$KUBECTL" wait --for=condition=Established crd --all --timeout=60s >/dev/null
  say 'waiting for the operator'
  if ! "$KUBECTL" rollout status deployment/slipway-operator -n slipway-system --timeout=180s; then
    diagnose slipway-system
    die 'the operator did not become ready'
  fi
}

# diagnose NAMESPACE prints what one would look at first when something does not become ready.
diagnose() {
  echo "---- $1: objects"
  "$KUBECTL" get all,events -n "$1" || true
  echo "---- $1: pods"
  "$KUBECTL" describe pods -n "$1" | tail -n 60 || true
  echo '---- slipway-system: the last log lines of the operator'
  "$KUBECTL" logs -n slipway-system -l app.kubernetes.io/component=operator --all-containers --prefix --tail=40 || true
} >&2
