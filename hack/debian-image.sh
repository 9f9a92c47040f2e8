#!/usr/bin/env bash
# Makes an image of Debian packages, for tests: hack/image/debian/NAME.packages lists them. They are downloaded, and unpacked
# into a folder; none is installed, and no script of theirs runs. No release holds such an image.
#
#   hack/debian-image.sh NAME    writes bin/debian/NAME.tar and prints the image's name
#
# apt-get verifies what it downloads. The packed image is kept in
# ${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/debian/<hash>: the hash covers the list, the versions and checksums
# of the packages, and everything that packs them. Where apt-get knows no packages, because it was never online, the newest image
# of the same list and packer is taken. Nothing of this needs root but `apt-get update`, which runs where packages are unknown.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:?usage: hack/debian-image.sh NAME}
list=hack/image/debian/$name.packages
[[ -f $list ]] || { echo "hack/debian-image.sh: there is no $list" >&2; exit 1; }
mapfile -t packages < <(grep -v '^#' "$list")

die() {
  echo "hack/debian-image.sh: $*" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  die "the image $name is made of Debian packages: run this on Debian 12"
architecture=$(dpkg --print-architecture)
cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/debian
mkdir -p "$cache" bin/debian
exec 9>"$cache/$name.lock"
flock 9 # a second run waits for the first one's image instead of making another

recipe=$( (cat "$list" hack/debian-image.sh hack/image/tree.go hack/image/archive/{archive,layer,tree}.go; echo "$architecture") | sha256sum | cut -c1-12)

# find_image sets image to the folder of this image in the cache.
find_image() {
  local known
  # A line for each package: where it is, its file, size and checksum. apt-get answers from its lists.
  known=$(apt-get -q download --print-uris "${packages[@]}" 2>/dev/null) || known=
  if [[ -z $known ]]; then
    image=$(find "$cache" -maxdepth 1 -type d -name "$name-$recipe-*" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
    return
  fi
  # The checksums name the content. Addresses may change.
  image=$cache/$name-$recipe-$(awk '{ print $2, $NF }' <<<"$known" | sort | sha256sum | cut -c1-12)
}

# found tells whether there is something to take.
found() { [[ -n $image && -f $image/image.tar ]]; }

# download puts the packages into a folder. As root apt-get would do it as a user who cannot write there.
download() { (cd "$1" && rm -f ./*.deb && apt-get -q -o APT::Sandbox::User=root download "${packages[@]}" >&2); }

# unpack makes a root file system of the packages, without what no program reads: pages, translations, and the parts of the
# compiler for queries.
unpack() {
  local package
  for package in "$1"/*.deb; do dpkg-deb -x "$package" "$2"; done
  rm -rf "$2"/usr/share/{doc,gcc,gdb,info,lintian,locale,man,menu} "$2"/usr/share/postgresql/15/man \
    "$2"/usr/lib/postgresql/15/lib/{bitcode,llvmjit*}
  mkdir -p "$2/data" # for a volume
}

find_image
if ! found; then
  start=$SECONDS
  work=$(mktemp -d "$cache/new.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/packages" "$work/root" "$work/image"
  if [[ -z $image ]] || ! download "$work/packages"; then
    echo 'debian-image: apt-get does not have the packages; asking for newer lists' >&2
    apt-get -q update >&2 || true
    find_image
    [[ -n $image ]] || die "apt-get does not know the packages of $list, which are those of Debian 12"
    found || download "$work/packages" || die 'the packages cannot be downloaded'
  fi
fi
tag=$name:$(basename "${image#"$cache/$name-"}")
if ! found; then
  unpack "$work/packages" "$work/root"
  make --no-print-directory bin/image >&2
  bin/image tree --folder "$work/root" --architecture "$architecture" --env PATH=/usr/lib/postgresql/15/bin:/usr/bin:/bin \
    --tag "$tag" --output "$work/image/image.tar" >&2
  rm -rf "$image" && mv "$work/image" "$image" # whole, or not at all
  echo "debian-image: packed $name from ${#packages[@]} packages in $((SECONDS - start)) s" >&2
fi
ln -sfn "$image/image.tar" "bin/debian/$name.tar"
echo "$tag"
