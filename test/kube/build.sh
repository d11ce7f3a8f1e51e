#!/usr/bin/env bash
# Builds kubetest, unless a build of the very same sources is in the cache, and prints its path.
# The first build compiles all of Kubernetes: about ten minutes on two cores. So the binary is kept
# outside of the clone, in $CHANCERY_CACHE (default: ~/.cache/chancery), under the hash of all that
# goes into it. Two of these at once are safe: the second waits, and finds what the first has built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

hash=$({ go version; for f in build.sh go.mod go.sum *.go; do echo "$f"; cat "$f"; done; } | sha256 | cut -c1-16)
cache=${CHANCERY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/chancery}
binary=$cache/kubetest-$hash

if [ ! -x "$binary" ]; then
    mkdir -p "$cache"
    # Without flock(1) two builds at once do the work twice, and both results are good.
    if command -v flock >/dev/null; then
        exec 9>"$cache/kubetest.lock"
        flock 9
    fi
fi
if [ ! -x "$binary" ]; then
    echo "building a Kubernetes control plane for the tests; the first time takes about ten minutes" >&2
    # kubectl and the API server refuse to run without a version.
    version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' go.mod)
    minor=${version#v1.}
    minor=${minor%%.*}
    flags="-s -w"
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1"
        flags+=" -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
    done
    temporary=$binary.$$
    trap 'rm -f "$temporary"' EXIT
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$flags" -o "$temporary" . 9>&-
    mv "$temporary" "$binary"
fi
echo "$binary"
