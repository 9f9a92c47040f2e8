#!/usr/bin/env bash
# Prints the path of a pinned tool, building it first when it is not in the cache yet.
#
#   hack/tool.sh NAME              one of the tool directives in hack/tools/go.mod, or in the go.mod of a folder below, by its
#                                  last path element
#
# A file "tags" beside a go.mod holds the build tags of its tools.
#
# The cache is ${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/tools/<hash>. The hash covers go.mod, go.sum and tags
# of the tool's module and the Go version, so a changed pin never runs an old binary.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?usage: hack/tool.sh NAME}

# tool_in prints the package of the tool, when that folder's go.mod has a directive for it. The name has no suffix for a major
# version, such as /v2.
tool_in() {
  sed -n -e '/^tool (/,/^)/p' -e 's/^tool \([^(]\)/\1/p' "$1/go.mod" | awk '{ print $1 }' | grep -E "/$name(/v[0-9]+)?\$" || true
}

package=
for module in "$root/hack/tools" "$root"/hack/tools/*/; do
  if [[ ! -f $module/go.mod ]]; then continue; fi
  package=$(tool_in "$module")
  if [[ -n $package ]]; then break; fi
done
if [[ -z $package ]]; then
  echo "hack/tool.sh: $name is not a tool of hack/tools/go.mod, nor of a go.mod in a folder below" >&2
  exit 1
fi

cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
tags=
if [[ -f $module/tags ]]; then tags=$(<"$module/tags"); fi
hash=$( (cat "$module/go.mod" "$module/go.sum"; echo -n "$tags"; go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-16)
dir=$cache/tools/$hash
binary=$dir/$name

if [[ ! -x $binary ]]; then
  mkdir -p "$dir"
  exec 9>"$dir/$name.lock"
  flock 9 # a second make waits for the first one's build instead of repeating it
  if [[ ! -x $binary ]]; then
    echo "tools: building $name (once)" >&2
    start=$SECONDS
    CGO_ENABLED=0 go build -C "$module" -tags "$tags" -trimpath -ldflags '-s -w' -o "$binary.new" "$package" >&2
    mv "$binary.new" "$binary"
    echo "tools: $name is ready after $((SECONDS - start)) s" >&2
  fi
fi
echo "$binary"
