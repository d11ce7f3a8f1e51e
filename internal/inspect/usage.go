package inspect

import (
	"crypto/x509"
	"encoding/asn1"
	"strings"
)

// keyUsages are the bits of a key usage (RFC 5280 §4.2.1.3) as the standard spells them and in words.
var keyUsages = [...]struct {
	bit         x509.KeyUsage
	name, words string
}{
	{x509.KeyUsageDigitalSignature, "digitalSignature", "sign"},
	{x509.KeyUsageContentCommitment, "nonRepudiation", "sign without a way back"},
	{x509.KeyUsageKeyEncipherment, "keyEncipherment", "encipher keys"},
	{x509.KeyUsageDataEncipherment, "dataEncipherment", "encipher data"},
	{x509.KeyUsageKeyAgreement, "keyAgreement", "agree on keys"},
	{x509.KeyUsageCertSign, "keyCertSign", "sign certificates"},
	{x509.KeyUsageCRLSign, "cRLSign", "sign revocation lists"},
	{x509.KeyUsageEncipherOnly, "encipherOnly", "encipher only"},
	{x509.KeyUsageDecipherOnly, "decipherOnly", "decipher only"},
}

func keyUsageNames(usage x509.KeyUsage) []string {
	names := []string{}
	for _, known := range keyUsages {
		if usage&known.bit != 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// extendedKeyUsages are the purposes of RFC 5280 §4.2.1.12 and a few more that are met.
var extendedKeyUsages = map[string]struct{ name, words string }{
	"2.5.29.37.0":             {"anyExtendedKeyUsage", "anything"},
	"1.3.6.1.5.5.7.3.1":       {"serverAuth", "be a TLS server"},
	"1.3.6.1.5.5.7.3.2":       {"clientAuth", "be a TLS client"},
	"1.3.6.1.5.5.7.3.3":       {"codeSigning", "sign code"},
	"1.3.6.1.5.5.7.3.4":       {"emailProtection", "protect e-mail"},
	"1.3.6.1.5.5.7.3.8":       {"timeStamping", "sign time stamps"},
	"1.3.6.1.5.5.7.3.9":       {"OCSPSigning", "sign OCSP answers"},
	"1.3.6.1.5.5.7.3.17":      {"ipsecIKE", "IPsec"},
	"1.3.6.1.5.2.3.5":         {"pkinitKDC", "be a Kerberos KDC"},
	"1.3.6.1.4.1.311.20.2.2":  {"msSmartcardLogin", "log in by smart card"},
	"1.3.6.1.4.1.311.10.3.4":  {"msEncryptedFileSystem", "encrypt files"},
	"1.3.6.1.4.1.311.10.3.12": {"msDocumentSigning", "sign documents"},
}

// extendedNames returns known usages by name and others by their identifier.
func extendedNames(ids []asn1.ObjectIdentifier) []string {
	names := []string{}
	for _, id := range ids {
		if known, ok := extendedKeyUsages[id.String()]; ok {
			names = append(names, known.name)
		} else {
			names = append(names, id.String())
		}
	}
	return names
}

// usageWords says in words what keys may be used for; names that have none stand for themselves.
func usageWords(keyUsage, extended []string) string {
	var words []string
	for _, name := range keyUsage {
		for _, known := range keyUsages {
			if known.name == name {
				words = append(words, known.words)
			}
		}
	}
	for _, name := range extended {
		word := name
		for _, known := range extendedKeyUsages {
			if known.name == name {
				word = known.words
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// extensionNames are the extensions of RFC 5280 and those that are met beside them.
var extensionNames = map[string]string{
	"2.5.29.9": "subjectDirectoryAttributes", "2.5.29.14": "subjectKeyIdentifier", "2.5.29.15": "keyUsage", "2.5.29.17": "subjectAltName",
	"2.5.29.18": "issuerAltName", "2.5.29.19": "basicConstraints", "2.5.29.20": "cRLNumber", "2.5.29.27": "deltaCRLIndicator",
	"2.5.29.28": "issuingDistributionPoint", "2.5.29.30": "nameConstraints", "2.5.29.31": "cRLDistributionPoints",
	"2.5.29.32": "certificatePolicies", "2.5.29.33": "policyMappings", "2.5.29.35": "authorityKeyIdentifier", "2.5.29.36": "policyConstraints",
	"2.5.29.37": "extKeyUsage", "2.5.29.46": "freshestCRL", "2.5.29.54": "inhibitAnyPolicy",
	"1.3.6.1.5.5.7.1.1": "authorityInfoAccess", "1.3.6.1.5.5.7.1.11": "subjectInfoAccess", "1.3.6.1.5.5.7.1.24": "tlsFeature",
	"1.3.6.1.4.1.11129.2.4.2": "signedCertificateTimestamps", "1.3.6.1.4.1.11129.2.4.3": "precertificatePoison",
}
