#!/usr/bin/env bash
# Collects in dist what a release ships: the install manifest, the image archives, the kubectl plugin for common machines,
# and their checksums.
#
#   hack/dist.sh VERSION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:?usage: hack/dist.sh VERSION}

mkdir -p dist
find dist -mindepth 1 ! -name install.yaml -delete
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  file=dist/kubectl-slipway-$version-${platform/\//-}
  echo "dist: $file"
  CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
    go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$file" ./cmd/kubectl-slipway
done
for archive in bin/images/*.tar; do
  cp "$archive" "dist/$(basename "$archive" .tar)-$version.tar"
done
(cd dist && sha256sum -- *) >bin/SHA256SUMS
mv bin/SHA256SUMS dist/SHA256SUMS
echo "dist: $(find dist -type f | wc -l) files"
