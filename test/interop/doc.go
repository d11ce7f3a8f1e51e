// Package interop has programs of others judge what Chancery issues: OpenSSL, GnuTLS, NSS, Java, Python's cryptography, pkilint, curl and
// crypto/x509. A real server issues the certificates, by the way that workloads go.
//
// Its tests carry the build tag e2e. They install the judges that are missing (install.sh: Debian packages, as root, and Python packages in the
// cache); one that cannot be had fails the tests. Where a judge cannot do what it is asked, the tests say so and hold it to that.
package interop
