package sqlite

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// The bounds keep one reservation from failing the group that it is in.
const (
	maxIntent      = 64 << 10
	maxCertificate = 1 << 20
	counterBits    = 20
)

// record is a reservation as the file holds it: one line of its group's intents row, then the detail of its certificates row.
type record struct {
	ID       int64           `json:"id"`
	Serial   hexadecimal     `json:"serial"`
	Identity string          `json:"identity"`
	Detail   json.RawMessage `json:"detail"`
}

// detail is what of an intent is only ever read back whole.
type detail struct {
	Profile   string        `json:"profile"`
	Rule      string        `json:"rule"`
	Names     []string      `json:"names"`
	Origin    ledger.Origin `json:"origin"`
	KeyID     hexadecimal   `json:"key_id"`
	JoinToken hexadecimal   `json:"join_token"`
}

// hexadecimal is a byte string that JSON shows as hexadecimal.
type hexadecimal []byte

func (h *hexadecimal) UnmarshalText(text []byte) (err error) {
	*h, err = hex.AppendDecode(nil, text)
	return err
}

// line is an encoded record with what the writer needs of it at hand.
type line struct {
	id       int64
	serial   ledger.Serial
	identity string
	token    []byte
	text     string // the whole line, its newline included
	detail   string // the part of text that is the detail
}

// encode checks and encodes an intent. The counter orders reservations of one millisecond.
func encode(in *ledger.Intent, counter int64) (*line, error) {
	if err := check(in); err != nil {
		return nil, err
	}
	id := in.Created.UnixMilli()<<counterBits | counter&(1<<counterBits-1)
	b := make([]byte, 0, 640)
	b = strconv.AppendInt(append(b, `{"id":`...), id, 10)
	b = hex.AppendEncode(append(b, `,"serial":"`...), []byte(in.Serial))
	b = quote(append(b, `","identity":`...), in.Identity)
	start := len(b) + len(`,"detail":`)
	b = quote(append(b, `,"detail":{"profile":`...), in.Profile)
	b = quote(append(b, `,"rule":`...), in.Rule)
	b = append(b, `,"names":[`...)
	for i, name := range in.Names {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, name)
	}
	b = appendOrigin(append(b, `],"origin":`...), &in.Origin)
	b = hex.AppendEncode(append(b, `,"key_id":"`...), in.KeyID)
	b = append(b, '"')
	if len(in.JoinToken) > 0 {
		b = hex.AppendEncode(append(b, `,"join_token":"`...), in.JoinToken)
		b = append(b, '"')
	}
	b = append(b, "}}\n"...)
	if len(b) > maxIntent {
		return nil, fmt.Errorf("the intent has %d bytes, over the limit of %d", len(b), maxIntent)
	}
	text := string(b)
	return &line{
		id:       id,
		serial:   in.Serial,
		identity: in.Identity,
		token:    bytes.Clone(in.JoinToken),
		text:     text,
		detail:   text[start : len(text)-len("}\n")],
	}, nil
}

func check(in *ledger.Intent) error {
	switch {
	case len(in.Serial) == 0 || len(in.Serial) > 20 || in.Serial[0] == 0:
		return errors.New("a serial is 1 to 20 octets without a leading zero octet")
	case in.Created.Year() < 1970 || in.Created.Year() > 2200:
		return fmt.Errorf("the creation time %v is out of range", in.Created)
	default:
		return nil
	}
}

// appendOrigin is json.Marshal for an Origin, at a tenth of its cost: every issuance passes here.
func appendOrigin(b []byte, o *ledger.Origin) []byte {
	b = quote(append(b, `{"method":`...), o.Method)
	for _, field := range [...]struct{ key, value string }{
		{`,"credential_id":`, o.CredentialID},
		{`,"door":`, o.Door},
		{`,"remote":`, o.Remote},
		{`,"cluster":`, o.Cluster},
		{`,"namespace":`, o.Namespace},
		{`,"service_account":`, o.Account},
		{`,"service_account_uid":`, o.AccountUID},
		{`,"pod":`, o.Pod},
		{`,"pod_uid":`, o.PodUID},
		{`,"node":`, o.Node},
		{`,"node_uid":`, o.NodeUID},
		{`,"issuer":`, o.Issuer},
		{`,"subject":`, o.Subject},
		{`,"renews":`, o.Renews},
		{`,"first_method":`, o.FirstMethod},
	} {
		if field.value != "" {
			b = quote(append(b, field.key...), field.value)
		}
	}
	return append(b, '}')
}

// quote appends s as a JSON string. What is not UTF-8 becomes U+FFFD, as in encoding/json.
func quote(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always has an encoding
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// decode reads one line of an intents row.
func decode(text []byte) (*line, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading an intent: %w", err)
	}
	var d detail
	if err := json.Unmarshal(r.Detail, &d); err != nil {
		return nil, fmt.Errorf("reading the detail of an intent: %w", err)
	}
	return &line{id: r.ID, serial: ledger.Serial(r.Serial), identity: r.Identity, token: d.JoinToken, detail: string(r.Detail)}, nil
}

// decodeAll reads an intents row.
func decodeAll(payload string) (lines []*line, err error) {
	for text := range bytes.Lines([]byte(payload)) {
		l, err := decode(text)
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// intent returns what was encoded.
func (l *line) intent() (ledger.Intent, error) {
	var d detail
	if err := json.Unmarshal([]byte(l.detail), &d); err != nil {
		return ledger.Intent{}, fmt.Errorf("reading the detail of %s: %w", l.serial, err)
	}
	return ledger.Intent{
		Serial:    l.serial,
		Created:   fromMillis(l.id >> counterBits),
		Identity:  l.identity,
		Profile:   d.Profile,
		Rule:      d.Rule,
		Names:     d.Names,
		Origin:    d.Origin,
		KeyID:     d.KeyID,
		JoinToken: d.JoinToken,
	}, nil
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
