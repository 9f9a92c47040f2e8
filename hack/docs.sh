#!/usr/bin/env bash
# Fails when a page has a line of more than 120 characters. Tables and code may be wider, and so may a link.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Perl counts characters everywhere. Debian's awk, mawk, counts bytes, so é would be two.
git ls-files -z '*.md' | xargs -0 perl -CSD -ne '
  chomp;
  if (/^ *```/) { $code = !$code }
  elsif (!$code && !/^ *\|/ && !/^\S*$/ && length > 120) {
    printf "%s:%d: %d characters, 120 are the limit\n", $ARGV, $., length;
    $failed = 1;
  }
  if (eof) { close ARGV; $code = 0 }
  END { $? = 1 if $failed }'
