#!/usr/bin/env bash
# Writes everything that is generated, and rewrites a file only when its content changes:
#
#   api/*/zz_generated.deepcopy.go    deep copies of the API types                        (controller-gen)
#   config/crd/                       one CustomResourceDefinition per kind, and the list (controller-gen)
#   config/rbac/role.yaml             the operator's rights, from the markers in internal (controller-gen)
#   config/rbac/users.yaml            the rights of people, from the kinds that the operator has  (hack/people)
#   pkg/client/                       clientset, listers, informers, apply configurations (code-generator)
#   whatever `//go:generate` lines name                                                   (go generate)
#   internal/monitor/web/dist         the web page of the monitor                         (hack/web.sh)
#   dist/install.yaml                 config/default as one file                          (kustomize)
#   charts/slipway/config, /templates/crds   what the Helm chart has in common with config  (hack/chart)
#   charts/slipway/Chart.yaml         its two versions, from VERSION
#   charts/slipway/charts/gateway-api the CRDs of the Gateway API, from its Go module                (hack/chart)
#
# The typed clients take by far the longest; a stamp in the cache remembers their inputs and outputs after a run, and
# while nothing has changed they are left alone. `FORCE=1` runs them regardless.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

module=github.com/slipway-dev/slipway
header=$root/hack/boilerplate.go.txt
cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# hash_of prints one hash over the content and the names of all files under the given paths.
hash_of() {
  find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

# step names what runs and says how long it took.
step() {
  local name=$1 start=$EPOCHREALTIME
  shift
  "$@"
  awk -v n="$name" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "generate: %-16s %5.1f s\n", n, b - a }'
}

# sync copies new and changed files from the folder $1 to the folder $2. It removes files from $2 that are not in $1 and whose
# name matches $3 (a find pattern; default: all names).
sync() {
  local from=$1 to=$2 pattern=${3:-*} file
  mkdir -p "$to"
  (cd "$from" && find . -type f) | while IFS= read -r file; do
    if ! cmp -s "$from/$file" "$to/$file"; then
      mkdir -p "$(dirname "$to/$file")"
      cp "$from/$file" "$to/$file"
      chmod 644 "$to/$file"
    fi
  done
  (cd "$to" && find . -type f -name "$pattern") | while IFS= read -r file; do
    if [[ ! -e $from/$file ]]; then rm -f "$to/$file"; fi
  done
  find "$to" -mindepth 1 -type d -empty -delete
}

# api_packages lists the API packages as paths from the root.
api_packages() {
  { grep -rlE --include='*.go' '^// \+groupName=' api || true; } | xargs -rn1 dirname | sort -u
}

deepcopy() {
  local package
  for package in $(api_packages); do
    mkdir -p "$tmp/object/$package"
    # Generated into an empty folder, so that an old file which no longer compiles does not matter.
    "$controller_gen" object:headerFile="$header" paths="./$package" output:object:dir="$tmp/object/$package"
    sync "$tmp/object/$package" "$package" 'zz_generated.deepcopy.go'
  done
}

client() {
  local stamp inputs_and_outputs
  stamp=$cache/stamps/client-$(pwd | sha256sum | cut -c1-16)
  inputs_and_outputs=(api pkg/client go.mod hack/generate.sh hack/boilerplate.go.txt hack/tools/go.mod)
  mkdir -p pkg/client
  if [[ -z ${FORCE:-} && -f $stamp && $(hash_of "${inputs_and_outputs[@]}") == "$(<"$stamp")" ]]; then return; fi
  generate_client
  mkdir -p "$(dirname "$stamp")"
  hash_of "${inputs_and_outputs[@]}" >"$stamp"
}

generate_client() {
  local out=$tmp/client pkg=$module/pkg/client package inputs=() packages=()
  local plurals=GatewayParameters:GatewayParameters # one word for one and for many
  for package in $(api_packages); do
    if grep -rqE '^// \+genclient' "$package"; then
      inputs+=(--input "$package")
      packages+=("$module/$package")
    fi
  done
  if [[ ${#packages[@]} == 0 ]]; then return; fi
  "$applyconfiguration_gen" --go-header-file "$header" \
    --output-dir "$out/applyconfiguration" --output-pkg "$pkg/applyconfiguration" "${packages[@]}"
  "$client_gen" --go-header-file "$header" --output-dir "$out/clientset" --output-pkg "$pkg/clientset" \
    --plural-exceptions "$plurals" --clientset-name versioned --apply-configuration-package "$pkg/applyconfiguration" \
    --input-base "$module" "${inputs[@]}"
  "$lister_gen" --go-header-file "$header" --output-dir "$out/listers" --output-pkg "$pkg/listers" \
    --plural-exceptions "$plurals" "${packages[@]}"
  "$informer_gen" --go-header-file "$header" --output-dir "$out/informers" --output-pkg "$pkg/informers" \
    --plural-exceptions "$plurals" \
    --versioned-clientset-package "$pkg/clientset/versioned" --listers-package "$pkg/listers" "${packages[@]}"
  # A hand-written doc.go or test beside the generated folders stays.
  local folder
  for folder in applyconfiguration clientset listers informers; do
    sync "$out/$folder" "pkg/client/$folder"
  done
}

crds() {
  mkdir -p "$tmp/crd"
  "$controller_gen" crd:headerFile=/dev/null paths=./api/... output:crd:dir="$tmp/crd"
  # The pattern of an amount would be told as a regular expression. In its place stands a rule that says in a sentence what an
  # amount is, unless there is one already. Kubernetes takes a unit alone for 0, so it has to begin with less than a letter.
  local file
  for file in "$tmp"/crd/*.yaml; do
    awk '
      held != "" && /x-kubernetes-int-or-string: true/ { line = $0; next }
      held != "" {
        print line
        if (!/x-kubernetes-validations:/) {
          match(held, /^ */)
          pad = substr(held, 1, RLENGTH)
          print pad "x-kubernetes-validations:"
          print pad "- message: it must be a number, or one with a unit, such as 500m for cpu, and 64Mi, 10Gi or 10G for memory"
          print pad "  rule: type(self) == int || isQuantity(self) && self < '"'"':'"'"'"
        }
        held = ""
      }
      /^ *pattern: \^\(\\\+\|-\)\?\(\(\[0-9\]\+/ { held = $0; next }
      { print }
    ' "$file" >"$tmp/without"
    cp "$tmp/without" "$file"
  done
  {
    echo '# Code generated by hack/generate.sh. DO NOT EDIT.'
    echo 'apiVersion: kustomize.config.k8s.io/v1beta1'
    echo 'kind: Kustomization'
    echo 'resources:'
    (cd "$tmp/crd" && find . -name '*.yaml' -printf '  - %f\n' | LC_ALL=C sort)
  } >"$tmp/kustomization.yaml"
  mv "$tmp/kustomization.yaml" "$tmp/crd/kustomization.yaml"
  sync "$tmp/crd" config/crd '*.yaml'
}

# operator_packages prints what has the rights of the operator, as paths of Go packages: all but what the monitor runs, whose
# rights are in config/monitor. With an argument: all but the controllers and what is run for the monitor alone, too.
operator_packages() {
  local folder
  for folder in internal/*/; do
    case $folder in
      internal/controller/ | internal/monitor/) ;;
      internal/operator/) echo "paths=./internal/operator" ;;
      *) echo "paths=./$folder..." ;;
    esac
  done
  if [[ -n ${1:-} ]]; then return; fi
  echo 'paths=./internal/operator/kindrole/...'
  for folder in internal/controller/*/; do echo "paths=./$folder..."; done
}

rbac() {
  local packages
  mapfile -t packages < <(operator_packages)
  mkdir -p "$tmp/rbac"
  "$controller_gen" rbac:roleName=slipway-operator "${packages[@]}" output:rbac:dir="$tmp/rbac"
  if [[ -f $tmp/rbac/role.yaml ]]; then sync "$tmp/rbac" config/rbac 'role.yaml'; fi
}

go_generate() {
  { grep -rlE --include='*.go' '^//go:generate ' . || true; } | xargs -rn1 dirname | sort -u | xargs -r go generate
}

install_yaml() {
  mkdir -p "$tmp/dist"
  {
    echo '# Code generated by hack/generate.sh from config/default. DO NOT EDIT.'
    "$kustomize" build config/default
  } >"$tmp/dist/install.yaml"
  sync "$tmp/dist" dist 'install.yaml'
}

# chart collects the operator's rights for each controller, and runs the generator of the chart with them.
chart() {
  local controller name version others gateway_api
  for controller in internal/controller/*/; do
    name=$(basename "$controller")
    if [[ -f $controller/controller.go ]]; then rules_of "$name" "paths=./$controller..."; fi
  done
  mapfile -t others < <(operator_packages rest)
  rules_of operator "${others[@]}"
  rules_of monitorkinds paths=./internal/operator/kindrole/...
  go mod download sigs.k8s.io/gateway-api
  gateway_api=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)
  go run ./hack/chart -rules "$tmp/rules" -gateway-api "$gateway_api/config/crd"
  version=$(<VERSION)
  sed "s/^version:.*/version: ${version#v}/; s/^appVersion:.*/appVersion: $version/" charts/slipway/Chart.yaml >"$tmp/Chart.yaml"
  if ! cmp -s "$tmp/Chart.yaml" charts/slipway/Chart.yaml; then cp "$tmp/Chart.yaml" charts/slipway/Chart.yaml; fi
}

# rules_of NAME paths=PACKAGES... writes the rights that the markers in some packages ask for.
rules_of() {
  local name=$1
  shift
  mkdir -p "$tmp/rules/$name"
  "$controller_gen" rbac:roleName="$name" "$@" output:rbac:dir="$tmp/rules/$name"
}

for tool in controller-gen applyconfiguration-gen client-gen lister-gen informer-gen kustomize; do
  declare "${tool//-/_}=$(hack/tool.sh "$tool")"
done

if [[ -n $(ls -d api/*/ 2>/dev/null) ]]; then
  step 'deep copies' deepcopy
  step 'typed clients' client
  step 'CRDs' crds
fi
if [[ -d internal ]]; then step 'RBAC' rbac; fi
step 'go generate' go_generate
if [[ -d internal/monitor/web ]]; then step 'web page' hack/web.sh; fi
if [[ -f config/crd/kustomization.yaml && -f config/rbac/role.yaml ]]; then step 'install.yaml' install_yaml; fi
if [[ -d charts/slipway && -d config/crd ]]; then step 'chart' chart; fi
