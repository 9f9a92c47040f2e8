#!/usr/bin/env bash
# Runs every fuzz target of our own modules for a while, and prints what `go test -json` prints. An input that
# fails is saved to a file in testdata/fuzz beside its target. Commit it with the fix: every later run tries it again.
#
#   hack/test-fuzz.sh TIME [NAME [FOLDER...]]     TIME for each target: 200x is 200 inputs, 60s is a minute; only targets with NAME
#                                                 in their name, and those of some folders, such as ./internal/schedule
#
# A package's test program is built once. As many packages are fuzzed at a time as there are processors, by one worker each.
# COVERAGE=no builds without coverage, so the fuzzer does not learn which inputs reach new lines. For a few hundred inputs
# that matters little, and it saves compiling all packages once more, which takes minutes on a new machine.
# In a run that nobody watches, give a number of inputs and not a time: at the end of the time Go may report a failure,
# "context deadline exceeded" (golang/go#75804).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:?usage: hack/test-fuzz.sh TIME [NAME]}
name=${2:-}
only=("${@:3}")
instrument=(-fuzz .)
if [[ ${COVERAGE:-yes} == no ]]; then instrument=(); fi
work=$(mktemp -d)
# Each job is a process group of its own, so that an interrupt ends all of it.
set -m
trap 'for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# targets FOLDER prints the fuzz targets of a package.
targets() { cat "$1"/*_test.go | sed -nE 's/^func (Fuzz[A-Z0-9_][A-Za-z0-9_]*)\(.*/\1/p' | grep -F -- "$name" || true; }

# fuzz FOLDER fuzzes a package, and writes the events to a file of its own, because packages run at the same time.
fuzz() {
  local folder=$1 id=${1//\//_} package cache target
  package=$(go -C "$folder" list .)
  # Interesting inputs of earlier runs help to find more, and cost time. A run for a number of inputs starts without them.
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
  if [[ ${#only[@]} != 0 && " ${only[*]} " != *" ./$folder "* ]]; then continue; fi
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
