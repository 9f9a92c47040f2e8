#!/usr/bin/env bash
# Makes what a release ships, in dist/<version>: images, chart, install manifest, plugin, SBOMs, manifest for krew, checksums, and a
# signature when there is a key. docs/dev/release.md says what each file is, and how one verifies them.
#
#   SIGNING_KEY=file    private ed25519 key (PKCS #8, PEM) that signs the checksums
#   REGISTRY=name       goes before the names of the images in install.yaml and chart, such as registry.example.com/slipway
#   DOWNLOAD=address    where the files will be found, for the manifest for krew
#   SOURCE_DATE_EPOCH   the time of everything in the release, in seconds since 1970; default: the last commit's
#
# The same commit and the same Go version give the same bytes, in any folder. So only what is committed is used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 022

die() {
  echo "dist: $*" >&2
  exit 1
}

version=$(<VERSION)
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || die "VERSION says $version, which is not a version such as v1.2.3"
[[ -z $(git status --porcelain) ]] || die 'the tree is not clean: a release is made of what is committed'
tags=$(git tag --points-at HEAD 'v*')
[[ -z $tags || $'\n'$tags$'\n' == *$'\n'"$version"$'\n'* ]] || die "the commit has the tag $tags, and VERSION says $version"
commit=$(git rev-parse HEAD)
registry=${REGISTRY:-}
[[ $registry =~ ^([a-z0-9.:-]+(/[a-z0-9._-]+)*)?$ ]] || die "REGISTRY is $registry; it must look like registry.example.com/slipway"
download=${DOWNLOAD:-https://downloads.example.com/slipway/$version}

# Every setting that changes what Go writes is fixed here, so that the caller's environment changes nothing.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' GOFLAGS=-mod=readonly GOWORK=off LC_ALL=C TZ=UTC
unset GOOS GOARCH GOFIPS140

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
mkdir "$out"

say() { printf 'dist: [%3d s] %s\n' "$SECONDS" "$*"; }

go -C hack/image build -o "$work/image" .
go -C hack/release build -o "$work/release" .
cyclonedx=$(hack/tool.sh cyclonedx-gomod)

# sbom PROGRAM SYSTEM ARCHITECTURE BINARY lists the modules that are in a program.
sbom() {
  "$cyclonedx" bin -json -noserial -notimestamp -licenses -std -version "$version" \
    -output "$out/$1-$version-$2-$3.cdx.json" "$4" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "no SBOM of $1"; }
}

# build SYSTEM ARCHITECTURE PROGRAM... builds programs, with their licences beside them.
build() {
  local system=$1 architecture=$2 folder=$work/$1-$2 program package suffix=
  shift 2
  if [[ $system == windows ]]; then suffix=.exe; fi
  for program in "$@"; do
    package=./cmd/$program
    if [[ $program == slipway-demo ]]; then package=./hack/demo; fi
    mkdir -p "$folder/$program"
    GOOS=$system GOARCH=$architecture go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" \
      -o "$folder/$program/$program$suffix" "$package"
    cp LICENSE "$folder/$program/LICENSE"
    hack/licenses.sh collect "$folder/$program/THIRD-PARTY-LICENSES" "$system" "$architecture" "$package"
    sbom "$program" "$system" "$architecture" "$folder/$program/$program$suffix"
  done
  say "built $* for $system/$architecture"
}

# image PROGRAM packs an image for each architecture, and one for both.
image() {
  local program=$1 tag=${registry:+$registry/}$1:$version architecture folder binaries=() common
  common=(--tag "$tag" --version "$version" --revision "$commit")
  for architecture in amd64 arm64; do
    folder=$work/linux-$architecture/$program
    binaries+=(--binary "$folder/$program")
    "$work/image" build --binary "$folder/$program" "${common[@]}" --license "$folder/LICENSE" --license "$folder/THIRD-PARTY-LICENSES" \
      --output "$out/$program-$version-$architecture.tar"
  done
  cmp -s "$work"/linux-{amd64,arm64}/"$program"/THIRD-PARTY-LICENSES || die "$program has other licences for amd64 than for arm64"
  "$work/image" index "${binaries[@]}" "${common[@]}" --license "$folder/LICENSE" --license "$folder/THIRD-PARTY-LICENSES" \
    --output "$out/$program-$version.oci.tar"
} >"$work/log"

plugin() {
  local system=$1 architecture=$2 folder=$work/$1-$2/kubectl-slipway format=tar.gz program=kubectl-slipway
  if [[ $system == windows ]]; then
    format=zip
    program+=.exe
  fi
  "$work/release" plugin --binary "$folder/$program" --license "$folder/LICENSE" --license "$folder/THIRD-PARTY-LICENSES" \
    --output "$out/kubectl-slipway-$version-$system-$architecture.$format"
}

# charts packages each Helm chart that there is.
charts() {
  local chart helm
  for chart in charts/*/; do
    if [[ ! -f $chart/Chart.yaml ]]; then continue; fi
    helm=$(hack/tool.sh helm)
    # Not copied from the folder, because that may hold files that git ignores.
    git archive HEAD "$chart" | tar -x -C "$work"
    chart=$work/charts/$(basename "$chart")
    cp LICENSE "$chart/LICENSE"
    [[ $(grep -cx '  registry: ""' "$chart/values.yaml") == 1 ]] || die "$chart/values.yaml has no images.registry to set"
    sed -i "s|^  registry: \"\"\$|  registry: \"$registry\"|" "$chart/values.yaml"
    "$work/release" chart-yaml --version "$version" --registry "$registry" "$chart/Chart.yaml"
    "$helm" package "$chart" --version "${version#v}" --app-version "$version" --destination "$work/charts" >"$work/log"
    "$work/release" repack "$work/charts/$(basename "$chart")-${version#v}.tgz" "$out/$(basename "$chart")-${version#v}.tgz"
    say "packaged the chart $(basename "$chart")"
  done
}

images=(slipway-operator slipway-gateway slipway-backup slipway-monitor slipway-demo)
build linux amd64 "${images[@]}" kubectl-slipway
build linux arm64 "${images[@]}" kubectl-slipway
for platform in darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
  build "${platform%/*}" "${platform#*/}" kubectl-slipway
done
for program in "${images[@]}"; do image "$program"; done
for platform in {linux,darwin,windows}/{amd64,arm64}; do plugin "${platform%/*}" "${platform#*/}"; done
charts
"$work/release" install --version "$version" --registry "$registry" <dist/install.yaml >"$out/install.yaml"
{
  echo "# Slipway $version: kubectl apply --server-side -f monitor-rules.yaml, after install.yaml"
  cat config/monitor/rules/rules.yaml
} >"$out/monitor-rules.yaml"
"$work/release" krew --version "$version" --address "$download" "$out" >"$out/slipway.yaml"

chmod 644 "$out"/*
"$work/release" sums "$out"
if [[ -n ${SIGNING_KEY:-} ]]; then
  "$work/release" sign --key "$SIGNING_KEY" "$out"
  say 'signed the checksums'
else
  say 'NOT signed: no SIGNING_KEY'
fi
# Check the files the way somebody would who does not trust them.
"$work/release" inspect --version "$version" "$out"
"$work/release" verify --version "$version" "$out" >"$work/log"

rm -rf "dist/$version"
mv "$out" "dist/$version"
say "dist/$version has $(find "dist/$version" -type f | wc -l) files, $(du -sh "dist/$version" | cut -f1)"
