#!/usr/bin/env bash
# Fails when a page has a line of more than 120 characters. Tables and code may be wider, and so may a link.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files -z '*.md' | LC_ALL=C.UTF-8 xargs -0 awk '
  FNR == 1 { code = 0 }
  /^ *```/ { code = !code; next }
  code || /^ *\|/ || /^[^ ]*$/ { next }
  length($0) > 120 { printf "%s:%d: %d characters, 120 are the limit\n", FILENAME, FNR, length($0); failed = 1 }
  END { exit failed }'
