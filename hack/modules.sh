#!/usr/bin/env bash
# Prints the folder of every Go module of the repository, the main one (".") first.
#
#   hack/modules.sh         all
#   hack/modules.sh own     without those that only pin and build the programs of others: linting and testing them would mean
#                           linting and testing all of Kubernetes
#   hack/modules.sh tidy    without those that only a measurement or a long test builds: tidying them would mean downloading,
#                           for every change, what the tests of Caddy, Traefik and Prometheus need
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pins='^hack/(tools(/.*)?|localkube/components/.*|gatewaybench/peers/.*)$'
seldom='^hack/(gatewaybench/peers/.*|tools/prometheus)$'
git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod' | sort -u | while IFS= read -r file; do
  if [[ ! -f $file ]]; then continue; fi
  module=$(dirname "$file")
  if [[ ${1:-} == own && $module =~ $pins ]]; then continue; fi
  if [[ ${1:-} == tidy && $module =~ $seldom ]]; then continue; fi
  echo "$module"
done | LC_ALL=C sort
