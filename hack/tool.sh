#!/usr/bin/env bash
# Prints the path of a pinned tool, building it first when it is not in the cache yet.
#
#   hack/tool.sh NAME              one of the tool directives in hack/tools/go.mod, by its last path element
#
# The cache is ${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/tools/<hash>. The hash covers hack/tools/go.mod,
# hack/tools/go.sum and the Go version, so a changed pin never meets an old binary.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?usage: hack/tool.sh NAME}

cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
hash=$( (cat "$root/hack/tools/go.mod" "$root/hack/tools/go.sum"; go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-16)
dir=$cache/tools/$hash
binary=$dir/$name

if [[ ! -x $binary ]]; then
  # `go list tool` names the packages; a major version suffix is not the tool's name.
  package=$(go list -C "$root/hack/tools" -f '{{.ImportPath}}' tool | grep -E "/$name(/v[0-9]+)?\$" || true)
  if [[ -z $package ]]; then
    echo "hack/tool.sh: $name is not a tool of hack/tools/go.mod" >&2
    exit 1
  fi
  mkdir -p "$dir"
  exec 9>"$dir/$name.lock"
  flock 9 # a second make waits for the first one's build instead of repeating it
  if [[ ! -x $binary ]]; then
    echo "tools: building $name (once)" >&2
    start=$SECONDS
    CGO_ENABLED=0 go build -C "$root/hack/tools" -trimpath -ldflags '-s -w' -o "$binary.new" "$package" >&2
    mv "$binary.new" "$binary"
    echo "tools: $name is ready after $((SECONDS - start)) s" >&2
  fi
fi
echo "$binary"
