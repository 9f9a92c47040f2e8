#!/usr/bin/env bash
# Runs what `make test` has to run, one suite after the other: the end-to-end tests and the sample of the faults measure how
# soon something happens, so nothing runs beside them. hack/affected says what that is. A suite that fails does not keep the
# others from running. The last lines say what failed, and how to play it again.
#
# FULL=1 runs everything. BASE names another commit to compare with. SEED chooses the random inputs and the faults, DRAW the
# share of what is not affected. DRY=1 only prints what would run. TEST_COUNTS is a file that gets the counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seed=${SAMPLE:-$(git rev-parse --short=12 'HEAD^{tree}')}

# tree prints the tree that is tested, or nothing when it is not what is committed.
tree() {
  if [[ -z $(git status --porcelain) ]]; then git rev-parse 'HEAD^{tree}'; fi
}

before=$(tree)
plan=$(SEED=$seed bin/affected)
if [[ -z $plan ]]; then
  echo 'make test: there is nothing to run' >&2
  exit 1
fi
if [[ -n ${DRY:-} ]]; then
  while IFS=$'\t' read -ra words; do echo "make ${words[*]@Q}"; done <<<"$plan"
  exit
fi

counts=$(mktemp)
# A make that is interrupted ends by itself, so this script has to be told.
trap 'rm -f "$counts"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# again prints how to play a suite again that has failed. Of the packages of a suite only those that failed are named.
again() {
  local line="make $1 SEED=$seed" folder module packages=() modules=() word
  mapfile -t folders < <(sed -nE 's|^failed: github\.com/slipway-dev/slipway/([^ :]*).*|\1|p' "$counts" | sort -u)
  for folder in ${folders[@]+"${folders[@]}"}; do
    module=$(hack/modules.sh own | awk -v folder="$folder" '$0 != "." && index(folder "/", $0 "/") == 1')
    if [[ -z $module || $1 != test-go ]]; then packages+=("./$folder"); else modules+=("$module"); fi
  done
  if [[ ${#folders[@]} != 0 && $1 =~ ^test-(go|fuzz-sample)$ ]]; then line+=" PACKAGES='${packages[*]}'"; fi
  if [[ ${#folders[@]} != 0 && $1 == test-go ]]; then line+=" MODULES='${modules[*]}'"; fi
  for word in "${@:2}"; do
    case $word in
      PACKAGES=* | MODULES=*) ;;
      *) line+=" $word" ;;
    esac
  done
  echo "again: $line"
}

ran=0
failures=()
while IFS=$'\t' read -ra words; do
  start=$SECONDS
  ran=$((ran + 1))
  : >"$counts"
  if ! make "${words[@]}" TEST_COUNTS="$counts" </dev/null; then
    # A suite whose cluster did not start has counted no test.
    if ! grep -q '^failed: ' "$counts"; then echo "failed: ${words[0]}" >>"$counts"; fi
    failures+=("$(grep '^failed: ' "$counts")" "$(again "${words[@]}")")
  fi
  if [[ -n ${TEST_COUNTS:-} ]]; then cat "$counts" >>"$TEST_COUNTS"; fi
  echo "${words[0]} took $((SECONDS - start)) s"
done <<<"$plan"

if [[ ${#failures[@]} == 0 ]]; then
  echo "make test: all $ran suites passed"
  # `make proven` asks for this. What ran in part, or beside a change, has proven nothing.
  if [[ -n ${FULL:-} && -n $before && $(tree) == "$before" && -z ${TEST_FLAGS:-}${PACKAGES:-}${MODULES:-}${CASE:-}${KIND:-}${AREA:-} ]]; then
    echo "$before" >bin/proven
  fi
  exit
fi
echo "make test: $((${#failures[@]} / 2)) of $ran suites failed:"
printf '%s\n' "${failures[@]}"
if [[ -n ${TEST_COUNTS:-} ]]; then printf '%s\n' "${failures[@]}" | grep '^again: ' >>"$TEST_COUNTS"; fi
exit 1
