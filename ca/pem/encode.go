package pem

import (
	"encoding/base64"
	"slices"
)

// lineOctets are what fills a line of 64 base64 characters.
const lineOctets = 48

// Encode returns der as one canonical block: 64 columns, LF line ends, no headers (RFC 7468 §3, Figure 3). The label has to be one of the
// RFC's grammar; it is written as it is.
func Encode(label string, der []byte) []byte { return Append(nil, label, der) }

// Append appends the canonical block to dst and returns the longer slice.
func Append(dst []byte, label string, der []byte) []byte {
	wrapped := base64.StdEncoding.EncodedLen(len(der)) + (len(der)+lineOctets-1)/lineOctets
	dst = slices.Grow(dst, len("-----BEGIN -----\n-----END -----\n")+2*len(label)+wrapped)
	dst = append(dst, "-----BEGIN "...)
	dst = append(dst, label...)
	dst = append(dst, "-----\n"...)
	for chunk := range slices.Chunk(der, lineOctets) {
		dst = base64.StdEncoding.AppendEncode(dst, chunk)
		dst = append(dst, '\n')
	}
	dst = append(dst, "-----END "...)
	dst = append(dst, label...)
	return append(dst, "-----\n"...)
}
