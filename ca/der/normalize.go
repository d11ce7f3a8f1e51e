package der

import "slices"

// Normalize returns the DER of a certificate that somebody wrote in BER, and whether anything had to change.
//
// BER is tolerated only outside tbsCertificate: in the outer SEQUENCE, in signatureAlgorithm, and in the form of
// signatureValue's length. tbsCertificate has to be DER byte for byte, since readers in the field disagree on what a signature over
// a BER tbsCertificate covers. DER comes back as it is, the same slice. The result always passes Check; that it is a
// certificate is for its parser to say. Errors are of type *Error, with offsets into ber where they can be.
func Normalize(ber []byte, limits Limits) (der []byte, normalised bool, err error) {
	limits = limits.withDefaults()
	strict := check(ber, limits)
	if strict == nil {
		return ber, false, nil
	}
	if len(ber) > limits.MaxBytes {
		return nil, false, strict
	}
	if der, err := normalize(ber, limits); err != nil {
		return nil, false, err
	} else if err := check(der, limits); err != nil {
		return nil, false, err
	} else {
		return der, true, nil
	}
}

func normalize(ber []byte, limits Limits) ([]byte, *Error) {
	outer, err := readHeader(ber, 0, len(ber))
	switch {
	case err != nil:
		return nil, err
	case outer.tag != tagSequence:
		return nil, &Error{0, "§8.9.1", "a certificate starts with a SEQUENCE"}
	}
	end := len(ber)
	if !outer.indefinite {
		if end = outer.end(); end != len(ber) {
			return nil, &Error{end, "§8.1", "there are octets after the certificate"}
		}
	}

	tbs, err := readStrict(ber, outer.contents, end)
	switch {
	case err != nil:
		return nil, err
	case tbs.tag != tagSequence:
		return nil, &Error{tbs.start, "§8.9.1", "tbsCertificate has to be a SEQUENCE"}
	}
	if err := check(ber[tbs.start:tbs.end()], limits); err != nil {
		err.Offset += tbs.start
		return nil, err
	}

	algorithm, at, err := readTree(ber, tbs.end(), end, limits.MaxElements)
	if err != nil {
		return nil, err
	}

	signature, err := readHeader(ber, at, end)
	switch {
	case err != nil:
		return nil, err
	case signature.tag != tagBitString || signature.indefinite:
		return nil, &Error{at, "§10.2", "signatureValue has to be a primitive BIT STRING of definite length"}
	}
	at = signature.end()

	if outer.indefinite {
		if !isEndOfContents(ber, at, end) {
			return nil, &Error{at, "§8.1.5", "the certificate's indefinite length does not end after its three elements"}
		}
		at += 2
	}
	if at != len(ber) {
		return nil, &Error{at, "§8.1", "there are octets after signatureValue or after the certificate"}
	}

	contents := slices.Clone(ber[tbs.start:tbs.end()])
	contents = algorithm.append(contents, ber)
	contents = appendHeader(contents, tagBitString, signature.length)
	contents = append(contents, ber[signature.contents:signature.end()]...)
	return append(appendHeader(make([]byte, 0, len(contents)+6), tagSequence, len(contents)), contents...), nil
}

func isEndOfContents(ber []byte, at, limit int) bool {
	return limit-at >= 2 && ber[at] == 0 && ber[at+1] == 0
}

// appendHeader appends a tag and a length in its shortest form.
func appendHeader(dst []byte, tag byte, length int) []byte {
	dst = append(dst, tag)
	if length < 0x80 {
		return append(dst, byte(length)) //nolint:gosec // below 128
	}
	octets := lengthOctets(length) - 1
	dst = append(dst, 0x80|byte(octets)) //nolint:gosec // at most 4
	for shift := 8 * (octets - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(length>>shift)) //nolint:gosec // the octet is meant
	}
	return dst
}

// lengthOctets returns how many octets the shortest form of a length takes.
func lengthOctets(length int) int {
	octets := 1
	if length >= 0x80 {
		for ; length > 0; length >>= 8 {
			octets++
		}
	}
	return octets
}
