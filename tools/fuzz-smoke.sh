#!/usr/bin/env bash
# Runs each fuzz target of the module for $FUZZTIME (default: 5s). go test -fuzz takes one target at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The packages that have targets, so that the others need not be compiled for the list.
mapfile -t directories < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | sort -u)
if [ ${#directories[@]} -eq 0 ]; then
    echo "no fuzz targets found" >&2
    exit 1
fi
# go test -list prints a package's targets, and then "ok", the package and the time.
list=$(go test -list '^Fuzz' "${directories[@]}")
mapfile -t targets < <(awk '/^Fuzz/ { names[++n] = $1 } /^ok/ { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }' <<<"$list")
for target in "${targets[@]}"; do
    read -r package name <<<"$target"
    echo "== $name in $package"
    go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-5s}" "$package"
done
echo "${#targets[@]} fuzz targets"
