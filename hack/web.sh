#!/usr/bin/env bash
# Makes the monitor's web page: internal/monitor/web/dist, of the sources in internal/monitor/web/src and of libraries from npm.
#
#   hack/web.sh            makes it, when it is not of these sources; `make generate` does this
#   hack/web.sh check      makes it again, and compares: `make verify` does this. Without npm it compares the checksums only
#   hack/web.sh modules    prints the folder with the libraries, after installing them
#
# Libraries are pinned in package.json, and package-lock.json has the checksum of each. npm downloads them, once, into
# ${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/web/<hash of the lock file>, and runs no script of theirs. esbuild,
# which is a Go program, bundles them. So npm is needed only where the sources change: Debian has it as the package npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
web=internal/monitor/web
cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}/web
modules=$cache/$(cat $web/package.json $web/package-lock.json | sha256sum | cut -c1-16)/node_modules
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
  echo "hack/web.sh: $*" >&2
  exit 1
}

# sums prints what dist is made of, and what it is: two checksums.
sums() {
  find $web/src $web/package.json $web/package-lock.json $web/tsconfig.json hack/web.sh hack/tools/web/go.mod -type f -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | awk '{ print $1 "  sources" }'
  (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | sha256sum | awk '{ print $1 "  dist" }'
}

# install puts the libraries into the cache.
install() {
  if [[ -d $modules ]]; then return; fi
  command -v npm >/dev/null || die "the libraries of the page are missing, and npm, which downloads them (Debian's package npm)"
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9 # a second run waits for the first one's download
  if [[ -d $modules ]]; then return; fi
  echo 'web: downloading the libraries of the page (once)' >&2
  local new
  new=$(mktemp -d "$cache/new.XXXXXX")
  cp $web/package.json $web/package-lock.json "$new"
  npm ci --prefix "$new" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  rm -rf "$(dirname "$modules")"
  mv "$new" "$(dirname "$modules")"
}

# build makes the page in the folder $1.
build() {
  mkdir -p "$1/assets" "$work/build"
  # The sources are beside the libraries: that is where both the compiler and esbuild look for them.
  cp -r $web/src $web/tsconfig.json "$work/build"
  ln -s "$modules" "$work/build/node_modules"
  if command -v node >/dev/null; then node "$modules/typescript/bin/tsc" -p "$work/build"; fi
  "$esbuild" "$work/build/src/main.tsx" --bundle --minify --charset=utf8 --target=es2022 --jsx=automatic --jsx-import-source=preact \
    --legal-comments=none --log-level=warning --outfile="$1/assets/page.js"
  cp $web/src/index.html "$1/index.html"
  cp $web/src/icon.svg "$1/assets/icon.svg"
  licences >"$1/assets/licences.txt"
  chmod -R u=rwX,go=rX "$1"
}

# licences prints the licences of what is in the bundle.
licences() {
  local name
  echo 'This page contains the work of others, under these licences.'
  for name in diff preact uplot; do
    printf '\n==== %s %s\n\n' "$name" "$(sed -n 's/^ *"version": "\(.*\)".*/\1/p' "$modules/$name/package.json" | head -n 1)"
    cat "$modules/$name/LICENSE"
  done
}

is_made() { [[ -d $web/dist && -f $web/dist.sum && $(sums $web/dist) == "$(<$web/dist.sum)" ]]; }

case ${1:-} in
  '')
    if is_made; then exit; fi
    install
    esbuild=$(hack/tool.sh esbuild)
    build "$work/dist"
    rm -rf $web/dist
    cp -r "$work/dist" $web/dist
    sums $web/dist >$web/dist.sum
    echo "web: made $web/dist, $(gzip -9c $web/dist/assets/page.js | wc -c) bytes of script and $(gzip -9c $web/dist/assets/page.css | wc -c) of style, compressed"
    ;;
  check)
    is_made || die "$web/dist is not of these sources: run make generate"
    if [[ ! -d $modules ]] && ! command -v npm >/dev/null; then
      echo 'web: there is no npm here, so only the checksums were compared'
      exit
    fi
    install
    esbuild=$(hack/tool.sh esbuild)
    build "$work/dist"
    diff -r "$work/dist" $web/dist >&2 || die "$web/dist is not what the sources give"
    ;;
  modules)
    install
    echo "$modules"
    ;;
  *)
    sed -n '2,7s/^# \?//p' "$0" >&2
    exit 2
    ;;
esac
