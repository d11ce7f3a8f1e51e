package chain

import (
	"crypto/x509"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// distributionPoint is where the lists for a certificate are, DistributionPoint of RFC 5280 §4.2.1.13.
type distributionPoint struct {
	names   []generalName // the point's name, or else the names of who issues its lists
	issuers []distinguishedName
	foreign bool // the lists' issuer is given, and so not by itself the certificate's
	reasons reasons
}

// pointOfIssuer stands for the lists of a certificate's issuer that no point of the certificate names.
func pointOfIssuer(issuer distinguishedName) distributionPoint {
	return distributionPoint{
		names:   []generalName{{tag: tagDirectoryName, directory: issuer}},
		issuers: []distinguishedName{issuer},
		reasons: allReasons,
	}
}

// readPoints reads the CRL distribution points of a certificate by issuer, and puts the one that stands for the rest behind them.
func readPoints(value cryptobyte.String, issuer distinguishedName) ([]distributionPoint, error) {
	var points []distributionPoint
	err := eachSequence(value, func(fields cryptobyte.String) bool {
		point, ok := readPoint(fields, issuer)
		points = append(points, point)
		return ok
	})
	return append(points, pointOfIssuer(issuer)), err
}

// readPoint reads the contents of a DistributionPoint in a certificate by issuer.
func readPoint(fields cryptobyte.String, issuer distinguishedName) (distributionPoint, bool) {
	name, hasName := optional(&fields, 0, true)
	flags, hasReasons := optional(&fields, 1, false)
	crlIssuer, hasIssuer := optional(&fields, 2, true)
	point := distributionPoint{issuers: []distinguishedName{issuer}, reasons: allReasons}
	ok := fields.Empty()
	if hasReasons {
		var read bool
		point.reasons, read = readReasons(flags)
		ok = ok && read
	}
	if hasIssuer {
		names, err := generalNamesIn(crlIssuer)
		ok = ok && err == nil
		point.foreign, point.issuers, point.names = true, nil, names
		for _, name := range names {
			if name.tag == tagDirectoryName {
				point.issuers = append(point.issuers, name.directory)
			}
		}
	}
	if hasName {
		if len(point.issuers) > 0 {
			issuer = point.issuers[0]
		}
		names, err := pointNames(name, issuer)
		ok = ok && err == nil
		point.names = names
	}
	return point, ok
}

// serialContents returns the contents of the INTEGER that is a certificate's serial number, as lists hold it.
func serialContents(certificate *x509.Certificate) string {
	var b cryptobyte.Builder
	b.AddASN1BigInt(certificate.SerialNumber)
	encoding, err := b.Bytes()
	var contents cryptobyte.String
	if err != nil || !(*cryptobyte.String)(&encoding).ReadASN1(&contents, cryptobyte_asn1.INTEGER) {
		return ""
	}
	return string(contents)
}
