#!/usr/bin/env bash
# Installs the judges that are missing, and prints the path of the Python that has the Python ones.
# Programs come from Debian and need root. Python packages go into a virtual environment outside of the clone, in
# $CHANCERY_CACHE (default: ~/.cache/chancery), under the hash of their versions. Two of these at once are safe.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${CHANCERY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/chancery}
mkdir -p "$cache"
if command -v flock >/dev/null; then
    exec 9>"$cache/interop.lock"
    flock 9
fi

missing=()
for want in openssl:openssl curl:curl certtool:gnutls-bin gnutls-cli:gnutls-bin certutil:libnss3-tools python3:python3; do
    command -v "${want%%:*}" >/dev/null || missing+=("${want#*:}")
done
# Java runs a source file only with its compiler.
java --list-modules 2>/dev/null | grep -q '^jdk.compiler@' || missing+=(default-jdk-headless)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
        echo "these are missing and can only be installed by root on Debian: ${missing[*]}" >&2
        exit 1
    fi
    echo "installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2 9>&-
    apt-get install -qy --no-install-recommends "${missing[@]}" >&2 9>&-
fi

hash=$({ python3 --version; cat requirements.txt; } | sha256sum | cut -c1-16)
environment=$cache/interop-python-$hash
if [ ! -e "$environment/complete" ]; then
    echo "installing $(paste -sd' ' requirements.txt) into $environment" >&2
    rm -rf "$environment"
    python3 -m venv "$environment" >&2
    "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt >&2 9>&-
    touch "$environment/complete"
fi
echo "$environment/bin/python"
