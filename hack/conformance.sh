#!/usr/bin/env bash
# Gives a running local cluster what the conformance suite of the Gateway API needs before it starts: the CRDs, the GatewayClass
# that is tested, and the images that the suite's manifests name. Nothing is pulled, and no manifest is changed: the images are
# built from Go modules, and loaded under the manifests' names. hack/test-e2e.sh calls this.
#
#   hack/conformance.sh NAME    the cluster, as `localkube up --name` knows it
#
# CHANNEL is the channel of the CRDs, experimental (the default) or standard. They come from the module that the suite is
# built for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
name=${1:?usage: hack/conformance.sh NAME}
channel=${CHANNEL:-experimental}
[[ $channel == experimental || $channel == standard ]] || die "CHANNEL is $channel; it must be experimental or standard"
KUBECONFIG=$(bin/localkube kubeconfig --name "$name")
export KUBECONFIG
find_kubectl

# load_image BINARY TAG... loads a program under names that are of no use in a release.
load_image() {
  local binary=$1 tag archive
  shift
  for tag in "$@"; do
    archive=bin/conformance/images/${tag//[\/:]/_}.tar
    if [[ ! $archive -nt $binary || ! $archive -nt bin/image ]]; then
      bin/image build --binary "$binary" --version "${tag##*:}" --tag "$tag" --output "$archive" >/dev/null
    fi
    bin/localkube load --name "$name" "$archive"
  done
}

# The tags are those in the manifests of the suite. The TCP and UDP tests, and the tests of retries, name other versions of the
# backend than the rest; one program serves all of them.
load_images() {
  local echo_basic coredns
  echo_basic=$(build_once test/conformance sigs.k8s.io/gateway-api/conformance/echo-basic echo-basic)
  coredns=$(build_once hack/localkube/components/coredns-whoami . coredns)
  make --no-print-directory bin/image
  mkdir -p bin/conformance/images
  load_image "$echo_basic" registry.k8s.io/gateway-api/echo-basic:v1.5.1 registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.2 \
    registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.3
  load_image "$coredns" registry.k8s.io/coredns/coredns:v1.12.2
}

install_crds() {
  local installed annotation='gateway\.networking\.k8s\.io/channel'
  installed=$("$KUBECTL" get crd gateways.gateway.networking.k8s.io --ignore-not-found -o jsonpath="{.metadata.annotations.$annotation}")
  [[ -z $installed || $installed == "$channel" ]] ||
    die "the cluster $name has the $installed CRDs; for the $channel ones, end it first: bin/localkube down --name $name"
  install_gateway_api test/conformance "$channel"
}

say "the cluster $name gets the $channel CRDs of the Gateway API, and the images of the suite"
install_crds
"$KUBECTL" apply --server-side -f - <<'YAML' >/dev/null
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: slipway}
spec: {controllerName: slipway.dev/gateway}
YAML
load_images
