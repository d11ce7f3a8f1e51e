package chain

import (
	"errors"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// generalName is a GeneralName (RFC 5280 §4.2.1.6) of any kind.
type generalName struct {
	tag       cryptobyte_asn1.Tag
	value     []byte            // the contents
	directory distinguishedName // if tag is tagDirectoryName
}

// same tells whether two names of distribution points are equal.
func (g generalName) same(other generalName) bool {
	if g.tag != other.tag {
		return false
	}
	if g.tag == tagDirectoryName {
		return g.directory.key == other.directory.key
	}
	return string(g.value) == string(other.value)
}

var errGeneralName = errors.New("a list of names is malformed")

// readGeneralNames reads GeneralNames in one element of the given tag.
func readGeneralNames(encoding cryptobyte.String, tag cryptobyte_asn1.Tag) ([]generalName, error) {
	var contents cryptobyte.String
	if !encoding.ReadASN1(&contents, tag) || !encoding.Empty() {
		return nil, errGeneralName
	}
	return generalNamesIn(contents)
}

// generalNamesIn reads the contents of GeneralNames.
func generalNamesIn(contents cryptobyte.String) ([]generalName, error) {
	var names []generalName
	for !contents.Empty() {
		name, err := readGeneralName(&contents)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func readGeneralName(from *cryptobyte.String) (generalName, error) {
	var value cryptobyte.String
	var name generalName
	if !from.ReadAnyASN1(&value, &name.tag) {
		return name, errGeneralName
	}
	name.value = value
	if name.tag == tagDirectoryName {
		var err error
		if name.directory, err = readName(value); err != nil {
			return name, err
		}
	}
	return name, nil
}

// describeKind returns the name of a kind as RFC 5280 spells it.
func describeKind(tag cryptobyte_asn1.Tag) string {
	switch tag {
	case tagOtherName:
		return "otherName"
	case tagRFC822Name:
		return "rfc822Name"
	case tagDNSName:
		return "dNSName"
	case tagX400Address:
		return "x400Address"
	case tagDirectoryName:
		return "directoryName"
	case tagEDIPartyName:
		return "ediPartyName"
	case tagURI:
		return "uniformResourceIdentifier"
	case tagIPAddress:
		return "iPAddress"
	case tagRegisteredID:
		return "registeredID"
	default:
		return "name of an unknown kind"
	}
}
