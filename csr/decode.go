package csr

import (
	"bytes"

	"github.com/chancery-ca/chancery/ca/pem"
)

// derSequence is the first octet of every request in DER. It is also the digit 0, with which the text around a PEM block may begin.
const derSequence = 0x30

// maxShortDER is the longest DER whose length is one octet.
const maxShortDER = 2 + 0x7f

// decode returns the DER of the input's only request, in memory of its own. Nothing is trimmed off DER: the last octet of a signature may well
// be a space or a line end.
func decode(input []byte) ([]byte, error) {
	switch {
	case len(input) == 0:
		return nil, invalid("it is empty; send a PKCS #10 request in PEM or DER")
	case isDER(input):
		return checkSize(input)
	case len(input) > MaxPEM:
		return nil, invalid("it has %d octets, and at most %d are read of a PEM text; ask for fewer names", len(input), MaxPEM)
	}
	blocks, err := pem.Decode(input, pem.Rules{
		Labels:    []string{"CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"},
		MaxBytes:  MaxPEM,
		MaxBlocks: 1,
	})
	if err != nil {
		return nil, invalid("it is neither DER nor exactly one PEM block CERTIFICATE REQUEST (RFC 7468 §7): %v", err)
	}
	if len(blocks) != 1 {
		return nil, invalid("there are %d PEM blocks; send exactly one CERTIFICATE REQUEST (RFC 7468 §7)", len(blocks))
	}
	return checkSize(blocks[0].Bytes)
}

// isDER tells DER from text. The second octet of DER is the first of its length: no ASCII, except in requests of at most maxShortDER octets (Ed25519
// without any name), and no PEM block that holds a request is as short as that.
func isDER(input []byte) bool {
	return input[0] == derSequence && (len(input) <= maxShortDER || input[1] >= 0x80)
}

func checkSize(der []byte) ([]byte, error) {
	if len(der) > MaxDER {
		return nil, invalid("it has %d octets of DER, and at most %d are read; ask for fewer names", len(der), MaxDER)
	}
	return bytes.Clone(der), nil
}
