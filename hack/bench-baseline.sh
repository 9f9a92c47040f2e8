#!/usr/bin/env bash
# Measures the micro benchmarks that every change of the gateway is compared with, and writes bin/bench/<commit>.txt for benchstat
# (docs/dev/testing.md). COUNT is the number of rounds. Arguments go to the programs of the tests, such as -test.benchtime 10x.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
names=(Handler PlainRoute LimitedAndLogged Cache Compression Match Compile Readings)

# They are looked for, so that they are found wherever they have moved to.
packages=()
for name in "${names[@]}"; do
  file=$(grep -rlE --include='*_test.go' "^func Benchmark$name\(" internal/gateway) || file=
  if [[ $(wc -w <<<"$file") != 1 ]]; then
    echo "bench-baseline: Benchmark$name has to be once in internal/gateway, and is in: ${file:-nothing}" >&2
    exit 1
  fi
  packages+=("$(dirname "$file")")
done
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)

commit=$(git rev-parse --short=12 HEAD)
if [[ -n $(git status --porcelain --untracked-files=no) ]]; then commit+=-changed; fi
mkdir -p bin/bench
result=$root/bin/bench/$commit.txt
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
for i in "${!packages[@]}"; do
  go test -c -o "$programs/$i" "./${packages[i]}"
done

# Rounds instead of -test.count: a time in which the machine is slow touches all benchmarks a little, and none as a whole.
pattern=$(IFS='|' && echo "^Benchmark(${names[*]})\$")
: >"$result"
for ((round = 1; round <= ${COUNT:-20}; round++)); do
  for i in "${!packages[@]}"; do
    (cd "${packages[i]}" && "$programs/$i" -test.run '^$' -test.bench "$pattern" -test.benchmem "$@") | tee -a "$result"
  done
done
echo "bench-baseline: wrote ${result#"$root"/}"
