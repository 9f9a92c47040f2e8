#!/usr/bin/env bash
# Runs golangci-lint with the one configuration on every module of our own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
golangci_lint=$(hack/tool.sh golangci-lint)
failed=0
for module in $(hack/modules.sh own); do
  start=$SECONDS
  (cd "$module" && "$golangci_lint" run --config "$root/.golangci.yml" "$@" ./...) || failed=1
  echo "lint: $module took $((SECONDS - start)) s"
done
exit "$failed"
