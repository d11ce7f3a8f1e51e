#!/usr/bin/env bash
# Fails, and shows the difference, if the generated code of api/ is not what its .proto files give.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/have"
(cd api && find . -name '*.pb.go' -print0 | tar -cf - --null -T -) | tar -xf - -C "$scratch/have"
go tool -modfile=tools/gen/go.mod buf generate api --template api/buf.gen.yaml --output "$scratch"
if ! diff -ru "$scratch/have" "$scratch/api"; then
    echo "the generated code is stale: run make generate" >&2
    exit 1
fi
