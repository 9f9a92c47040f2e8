#!/usr/bin/env bash
# Runs every fuzz target of our own modules for a while, and prints what `go test -json` prints. What a target finds is a file in
# testdata/fuzz beside it: commit it with the fix, and it is tried in every run from then on.
#
#   hack/test-fuzz.sh TIME [NAME]     TIME for each target: 200x is so many inputs, 60s is a minute; only targets with NAME in theirs
#
# A package's test program is built once, and as many packages as there are processors are fuzzed side by side, by one worker each.
# COVERAGE=no leaves out what tells the fuzzer which lines an input reaches: it then draws inputs without learning from them. For
# a few hundred inputs that costs little, and all packages need not be compiled once more, which takes minutes on a new machine.
# Inputs are better than a time where nobody looks: Go may call the end of a time a failure, "context deadline exceeded"
# (golang/go#75804).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:?usage: hack/test-fuzz.sh TIME [NAME]}
name=${2:-}
instrument=(-fuzz .)
if [[ ${COVERAGE:-yes} == no ]]; then instrument=(); fi
work=$(mktemp -d)
# Each job is a process group of its own, so that nothing goes on after an interrupt.
set -m
trap 'for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# targets FOLDER prints the fuzz targets of a package.
targets() { cat "$1"/*_test.go | sed -nE 's/^func (Fuzz[A-Z0-9_][A-Za-z0-9_]*)\(.*/\1/p' | grep -F -- "$name" || true; }

# fuzz FOLDER fuzzes a package, and writes the events to a file of its own: two at a time would mix theirs.
fuzz() {
  local folder=$1 id=${1//\//_} package cache target
  package=$(go -C "$folder" list .)
  # Interesting inputs of earlier runs help to find more, and cost time: a run that counts inputs does without them.
  cache=$(go env GOCACHE)/fuzz/$package
  if [[ $time == *x ]]; then cache=$work/$id.corpus; fi
  {
    if ! go -C "$folder" test -c "${instrument[@]}" -ldflags '-s -w' -o "$work/$id.test" . >"$work/$id.build" 2>&1; then
      cat "$work/$id.build"
      printf '{"Action":"output","Package":"%s","Output":"its tests do not build\\n"}\n{"Action":"fail","Package":"%s"}\n' "$package" "$package"
      return
    fi
    for target in $(targets "$folder"); do
      (cd "$folder" && go tool test2json -t -p "$package" "$work/$id.test" -test.v=test2json -test.paniconexit0 -test.run '^$' \
        -test.fuzz "^$target\$" -test.fuzztime "$time" -test.fuzzminimizetime 10x -test.fuzzcachedir "$cache" -test.parallel 1 2>&1) || true
    done
  } >"$work/$id.json"
  rm -f "$work/$id.test"
}

folders=()
while IFS= read -r folder; do
  if [[ -n $(targets "$folder") ]]; then folders+=("$folder"); fi
done < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz[A-Z0-9_]' | xargs -n1 dirname | sort -u)
if [[ ${#folders[@]} == 0 ]]; then
  echo "hack/test-fuzz.sh: there is no fuzz target with ${name:-any name}" >&2
  exit 1
fi

for folder in "${folders[@]}"; do
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || true; done
  fuzz "$folder" &
done
wait
cat "$work"/*.json
