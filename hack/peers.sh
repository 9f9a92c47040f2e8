#!/usr/bin/env bash
# Gives a running local cluster the images of the implementations that Slipway is measured beside (test/peers). They are built from
# their Go modules, which pin the versions, and nothing is pulled. hack/test-e2e.sh sources this.

# load_peers NAME loads them, and sets TRAEFIK_IMAGE. NAME is the cluster, as `localkube up --name` knows it.
load_peers() {
  local name=$1 module=hack/gatewaybench/peers/traefik package=github.com/traefik/traefik/v3 traefik version
  traefik=$(build_once "$module" "$package/cmd/traefik" traefik)
  version=$(go list -C "$module" -m -f '{{.Version}}' "$package")
  TRAEFIK_IMAGE=traefik:${version#v}
  make --no-print-directory bin/image
  bin/image build --binary "$traefik" --version "$version" --tag "$TRAEFIK_IMAGE" --output bin/traefik.tar
  bin/localkube load --name "$name" bin/traefik.tar
  export TRAEFIK_IMAGE
}
