#!/usr/bin/env bash
# Shows Chancery once, from an empty directory to a renewed certificate. It needs bin/chancery (make build) and openssl, works in a temporary
# directory and on free ports of 127.0.0.1, and leaves nothing behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

[ -x bin/chancery ] || make --no-print-directory build
PATH=$PWD/bin:$PATH
began=$SECONDS server=

work=$(mktemp -d "${TMPDIR:-/tmp}/chancery-demo.XXXXXX")
cleanup() {
    local status=$?
    trap - EXIT INT TERM
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if [ $status -ne 0 ]; then
        echo "demo: failed with exit status $status" >&2
        [ ! -f "$work/server.log" ] || tail -n 20 "$work/server.log" >&2
    fi
    rm -rf "$work"
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"
exec 3>&1 # what is shown, wherever a command's own output goes

say() { printf '\n# %s\n' "$*" >&3; }
# run COMMAND...: shows a command as a person would type it, and runs it.
run() {
    printf '$ %s\n' "$*" >&3
    "$@"
}
fail() {
    echo "demo: $*" >&2
    exit 1
}
# listening SETTING: waits until the server says where it listens, and prints the address.
listening() {
    local address
    for _ in $(seq 200); do
        address=$(sed -n 's/.*"msg":"listening","setting":"'"$1"'","address":"\([^"]*\)".*/\1/p' server.log)
        if [ -n "$address" ]; then
            echo "$address"
            return
        fi
        kill -0 "$server" 2>/dev/null || fail "the server ended"
        sleep 0.05
    done
    fail "the server does not listen after 10 s"
}

say "A new authority: a root, an issuing intermediate, a configuration that states every default, an empty ledger."
run chancery init --dir ca --trust-domain demo.example --ip 127.0.0.1 --listen-grpc 127.0.0.1:0 --listen-http 127.0.0.1:0 | tee init.txt
fingerprint=$(grep -oE '^  [0-9a-f]{64}$' init.txt | tr -d ' ')

say "The server. (Port 0 takes a free one; its log says which.)"
echo '$ chancery serve --config ca/chancery.yaml &'
chancery serve --config ca/chancery.yaml 2>server.log &
server=$!
grpc=$(listening listen.grpc)
http=$(listening listen.http)
echo "gRPC on $grpc, metrics and health on http://$http"

say "A join token: one certificate for one identity, once. The operator hands it to the machine."
run chancery token create --config ca/chancery.yaml --identity spiffe://demo.example/vm/web-1 >token
cut -c1-24 token | sed 's/$/…/'

say "On the machine: a key that stays there, a certificate, the trust bundle. All that it knows of the authority is the root's fingerprint."
run chancery request --server "$grpc" --fingerprint "$fingerprint" --join-token token --out web-1
ls -lL web-1/*.pem | awk '{ print "  " $1, $NF }'

say "Anybody's tools verify it."
run openssl verify -CAfile web-1/bundle.pem -untrusted web-1/chain.pem web-1/chain.pem
run chancery inspect web-1/chain.pem

say "The same token does not work a second time."
if run chancery request --server "$grpc" --fingerprint "$fingerprint" --join-token token --out thief; then
    fail "a used token was taken"
else
    echo "(exit code $?)"
fi

say "What was issued, to whom, by which rule: in the ledger before it left the server."
run chancery certs list --config ca/chancery.yaml
serial=$(chancery certs list --config ca/chancery.yaml --identity spiffe://demo.example/vm/web-1 -o json | sed -n 's/.*"serial": "\([0-9a-f]*\)".*/\1/p')
run chancery certs show --config ca/chancery.yaml "$serial" | sed '/-----BEGIN/,$d'

say "The next certificate, with a new key: the one that it holds is its credential now. The files change as one set."
before=$(openssl x509 -in web-1/chain.pem -noout -serial)
run chancery request --server "$grpc" --root web-1/bundle.pem --certificate web-1/chain.pem --key web-1/key.pem --out web-1
after=$(openssl x509 -in web-1/chain.pem -noout -serial)
[ "$before" != "$after" ] || fail "the certificate is still the old one"
openssl verify -CAfile ca/pki/roots.pem -untrusted web-1/chain.pem web-1/chain.pem >/dev/null || fail "the new certificate does not verify"

say "Revoked, it renews nothing any more."
run chancery revoke --config ca/chancery.yaml --reason key-compromise "${after#serial=}"
if run chancery request --server "$grpc" --root web-1/bundle.pem --certificate web-1/chain.pem --key web-1/key.pem --out again; then
    fail "a revoked certificate renewed itself"
else
    echo "(exit code $?)"
fi

say "The server stops when it is told to: calls under way are finished first."
echo '$ kill -TERM %1'
kill -TERM "$server"
wait "$server" || fail "the server ended with exit code $?"
server=
echo "It took $((SECONDS - began)) s, and nothing is left of it."
