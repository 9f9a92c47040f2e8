#!/usr/bin/env bash
# Prints a folder with the last release, made from the history of the repository: its install.yaml, and a chart.
# v0.1.0 had no chart. This one has today's templates, with the definitions, objects and rights of v0.1.0.
#
#   hack/old-release.sh
#   hack/old-release.sh --images    also images/slipway-operator.tar and images/slipway-gateway.tar, with the tag v0.1.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=v0.1.0
# No tag says which commit v0.1.0 was. This is the last commit whose state test/fault/testdata recorded as v0.1.0.
commit=c7b0aad7c194b0b262a06bd201468b8cf00c18a5

folder=$PWD/bin/old-release
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "hack/old-release.sh: $version is the commit $commit, which this checkout does not have; fetch the whole history (git fetch --unshallow)" >&2
  exit 1
fi

# build_images builds the programs of the commit and packs them, once. A file named after the commit marks that this is done.
build_images() {
  local images=$folder/images source=$folder/src name
  if [[ -f $images/$commit ]]; then return; fi
  echo "old-release: building the programs of $version (once)" >&2
  rm -rf "$images"
  mkdir -p "$images" "$source"
  git archive "$commit" | tar -x -C "$source"
  make --no-print-directory bin/image >&2
  for name in slipway-operator slipway-gateway; do
    CGO_ENABLED=0 go build -C "$source" -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$images/$name" "./cmd/$name"
    bin/image build --binary "$images/$name" --version "$version" --tag "$name:$version" --output "$images/$name.tar" >&2
    rm "$images/$name"
  done
  rm -r "$source"
  touch "$images/$commit"
}

mkdir -p "$folder/images"
find "$folder" -mindepth 1 -maxdepth 1 ! -name images -exec rm -r {} +
mkdir -p "$folder/rules/operator"
git archive "$commit" config dist/install.yaml | tar -x -C "$folder"
sed "s/:dev\b/:$version/" "$folder/dist/install.yaml" >"$folder/install.yaml"
cp -r charts/slipway "$folder/chart"
cp "$folder/config/rbac/role.yaml" "$folder/rules/operator/role.yaml"
gateway_api=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)
go run ./hack/chart -config "$folder/config" -rules "$folder/rules" -gateway-api "$gateway_api/config/crd" -chart "$folder/chart" -revisions "$folder/revisions.txt"
# What v0.1.0 did not have is today's, because the templates ask for it. It did not know the kind MonitorRule.
find charts/slipway/config -name '*.yaml' ! -name 'rules-*' ! -name 'monitorrule-*' -exec cp --no-clobber -t "$folder/chart/config" {} +
# Its definitions had no revision, which counts as 0.
sed -i '/slipway.dev\/schema-revision:/d' "$folder"/chart/templates/crds/*.yaml
sed -i 's/"1"/"0"/' "$folder/chart/config/schema-revisions.yaml"
sed -i "s/^version:.*/version: ${version#v}/; s/^appVersion:.*/appVersion: $version/" "$folder/chart/Chart.yaml"
if [[ ${1:-} == --images ]]; then build_images; fi
echo "$folder"
