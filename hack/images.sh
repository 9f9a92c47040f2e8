#!/usr/bin/env bash
# Packs the operator, the gateway, the program for backups, the monitor, the demo and versitygw into image archives, without Docker:
# bin/images/NAME.tar, and the image's name in bin/images/NAME.tag. The tag is TAG, or else it comes from the program's
# content: a new build then has a new name, and a cluster cannot take the old image for it. VERSION is the version that
# operator, gateway, slipway-backup and monitor were built with. The demo stays dev. versitygw is the S3 server of tests and of the demo:
# no part of a release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p bin/images
CGO_ENABLED=0 go build -C hack/demo -trimpath -buildvcs=false -ldflags '-s -w' -o "$PWD/bin/slipway-demo" .
cp -u "$(hack/tool.sh versitygw)" bin/versitygw
make --no-print-directory bin/image

for name in slipway-operator slipway-gateway slipway-backup slipway-monitor slipway-demo versitygw; do
  if [[ ! -f bin/$name ]]; then continue; fi # a program that this checkout does not have yet
  archive=bin/images/$name.tar
  image=$name:${TAG:-dev-$(sha256sum "bin/$name" | cut -c1-12)}
  version=${VERSION:-dev}
  case $name in
    slipway-demo) version=dev ;;
    versitygw) version=$(awk '$1 == "github.com/versity/versitygw" { print $2 }' hack/tools/versitygw/go.mod) ;;
  esac
  if [[ -f $archive && -f bin/images/$name.tag && $archive -nt bin/image && $(<"bin/images/$name.tag") == "$image" ]]; then
    continue # this content is packed already
  fi
  bin/image build --binary "bin/$name" --version "$version" --tag "$image" --output "$archive"
  echo "$image" >"bin/images/$name.tag"
  echo "images: $archive is $image"
done
