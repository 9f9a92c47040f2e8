#!/usr/bin/env bash
# Runs golangci-lint with the one configuration on every module that has Go files of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
golangci_lint=$(hack/tool.sh golangci-lint)
failed=0
for module in $(hack/modules.sh); do
  # A module without packages (hack/tools, or the main one before its first file) has nothing to lint.
  if [[ -z $(cd "$module" && go list -tags apitest,e2e,scale ./... 2>/dev/null) ]]; then continue; fi
  start=$SECONDS
  (cd "$module" && "$golangci_lint" run --config "$root/.golangci.yml" "$@" ./...) || failed=1
  echo "lint: $module took $((SECONDS - start)) s"
done
exit "$failed"
