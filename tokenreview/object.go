package tokenreview

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
	"unicode/utf8"
)

// maxMembers bounds an object of a token; service-account tokens have three in the header and eight claims.
const maxMembers = 64

// maxDate is the last second of the year 9999, the end of what RFC 3339 and X.509 can write.
const maxDate = 253402300799

// object is a JSON object by exact member names. encoding/json into a struct would match names without regard to case and let the last of
// two equal names win, where the API server's parser does neither: the two could then read different claims in one token.
type object map[string]json.RawMessage

// parseObject reads one JSON object of a token or a key, and nothing after it.
func parseObject(text []byte) (object, error) { return parseMembers(text, maxMembers) }

// parseMembers reads one JSON object of at most limit members, and nothing after it.
func parseMembers(text []byte, limit int) (object, error) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, errors.New("is not JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	members := make(object)
	for decoder.More() {
		token, err := decoder.Token()
		name, isString := token.(string)
		if err != nil || !isString {
			return nil, errors.New("is not a JSON object")
		}
		if _, twice := members[name]; twice {
			return nil, errors.New("has a member twice")
		}
		if len(members) == limit {
			return nil, errors.New("has too many members")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errors.New("is not a JSON object")
		}
		members[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("is not a JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has text after the JSON object")
	}
	return members, nil
}

// text returns a string member; ok is false if it is missing or of another type.
func (o object) text(name string) (value string, ok bool) {
	raw, present := o[name]
	if !present || len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	return value, true
}

// texts returns a member that is a string or an array of strings (RFC 7519 §4.1.3); ok is false if it is anything else.
func (o object) texts(name string) (values []string, ok bool) {
	if one, single := o.text(name); single {
		return []string{one}, true
	}
	var elements []*string
	raw, present := o[name]
	if !present || len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &elements) != nil {
		return nil, false
	}
	for _, element := range elements {
		if element == nil { // a null in the array
			return nil, false
		}
		values = append(values, *element)
	}
	return values, true
}

// date returns a NumericDate (RFC 7519 §2) that is a whole number of seconds from 1 to the end of the year 9999. Fractions and exponents,
// which the RFC allows, are refused: no cluster writes them, and parsers differ on what they mean.
func (o object) date(name string) (when time.Time, ok bool) {
	raw := o[name]
	if len(raw) == 0 || len(raw) > 12 {
		return time.Time{}, false
	}
	var seconds int64
	for _, c := range raw {
		if c < '0' || c > '9' {
			return time.Time{}, false
		}
		seconds = seconds*10 + int64(c-'0')
	}
	if seconds < 1 || seconds > maxDate {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0).UTC(), true
}
