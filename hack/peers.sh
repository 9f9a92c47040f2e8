# Gives a running local cluster the images of the implementations that Slipway is measured beside (test/peers). They are built from
# their Go modules, which pin the versions, and nothing is pulled. To be sourced by hack/test-e2e.sh.

# load_peer NAME MODULE PACKAGE PROGRAM FOLDER builds a program, and loads it under a name with the version of MODULE. It prints the
# name of the image. NAME is the cluster, as `localkube up --name` knows it.
load_peer() {
  local name=$1 module=$2 package=$3 program=$4 folder=hack/gatewaybench/peers/$5 binary version
  binary=$(build_once "$folder" "$package" "$program")
  version=$(go list -C "$folder" -m -f '{{.Version}}' "$module")
  bin/image build --binary "$binary" --version "$version" --tag "$program:${version#v}" --output "bin/$program.tar" >&2
  bin/localkube load --name "$name" "bin/$program.tar" >&2
  echo "$program:${version#v}"
}

# load_peers NAME loads all of them, and sets TRAEFIK_IMAGE and ENVOY_GATEWAY_IMAGE. Envoy Gateway gets its CRDs.
load_peers() {
  local name=$1 folder file files=()
  make --no-print-directory bin/image
  TRAEFIK_IMAGE=$(load_peer "$name" github.com/traefik/traefik/v3 github.com/traefik/traefik/v3/cmd/traefik traefik traefik)
  ENVOY_GATEWAY_IMAGE=$(load_peer "$name" github.com/envoyproxy/gateway github.com/envoyproxy/gateway/cmd/envoy-gateway envoy-gateway envoygateway)
  export TRAEFIK_IMAGE ENVOY_GATEWAY_IMAGE
  folder=$(go list -C hack/gatewaybench/peers/envoygateway -m -f '{{.Dir}}' github.com/envoyproxy/gateway)/charts/gateway-helm/charts/crds/crds/generated
  for file in "$folder"/*.yaml; do files+=(-f "$file"); done
  "$KUBECTL" apply --server-side "${files[@]}" >/dev/null
}
