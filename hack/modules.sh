#!/usr/bin/env bash
# Prints the folder of every Go module of the repository, the main one (".") first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod' | sort -u | while IFS= read -r file; do
  if [[ -f $file ]]; then dirname "$file"; fi
done
