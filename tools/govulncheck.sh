#!/usr/bin/env bash
# govulncheck.sh PACKAGE...: looks for known vulnerabilities that the packages can reach.
# The vulnerability data are those of golang.org/x/vulndb as pinned in tools/go.mod, so a verdict
# changes with a commit and not overnight, and no service but the Go module proxy is needed. For
# fresher data: (cd tools && go get golang.org/x/vulndb@latest).
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

go mod download -modfile="$tools/go.mod" golang.org/x/vulndb
# govulncheck takes a plain folder of OSV files for a database.
db=file://$(go list -modfile="$tools/go.mod" -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv
govulncheck() { go tool -modfile="$tools/go.mod" govulncheck -db "$db" "$@"; }

# A database that is read wrongly finds nothing, and nothing is what we hope for. So first ask it
# for a vulnerability that it must know.
if ! govulncheck -mode=query -format=json golang.org/x/text@v0.3.0 | grep '"GO-2021-0113"' >/dev/null; then
    echo "the vulnerability database does not know GO-2021-0113: is it read at all?" >&2
    exit 1
fi

report=$(mktemp)
trap 'rm -f "$report"' EXIT
status=0
govulncheck "$@" >"$report" || status=$?
# What is wrong in the standard library is mended by a newer Go and not by a change here, so it is
# told and does not fail: the same commit is good with the next patch release of Go.
if [ $status -eq 3 ] && grep -q '^Your code is affected by [0-9]* vulnerabilit[a-z]* from the Go standard library\.$' "$report"; then
    grep -E '^Vulnerability #|^    Fixed in:' "$report"
    echo "WARNING: this Go ($(go env GOVERSION)) has known vulnerabilities that we can reach: release with a newer one"
    exit 0
fi
cat "$report"
exit $status
