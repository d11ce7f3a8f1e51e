package csr

import "crypto/x509"

// CountVerifications returns rules under which every signature check is counted.
func CountVerifications(rules Rules, count *int) Rules {
	rules.verify = func(public any, algorithm x509.SignatureAlgorithm, message, signature []byte) error {
		*count++
		return verifySignature(public, algorithm, message, signature)
	}
	return rules
}
