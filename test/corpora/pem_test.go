package corpora_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/pem"
)

func TestPEM(t *testing.T) {
	each(t, "pem", 50, func(t *testing.T, r row, content []byte) {
		certificates, err := chain.ParsePEM(content)
		judge(t, r, "ParsePEM", err, r["verdict"])
		if count := strconv.Itoa(len(certificates)); count != r["certificates"] {
			t.Errorf("%s: ParsePEM returns %s certificates, there are %s", r["what"], count, r["certificates"])
		}
		if err == nil {
			holdEncoded(t, r, content, certificates[0].Raw)
			return
		}
		rule := "certificate"
		var refused *pem.Error
		if errors.As(err, &refused) {
			rule = refused.Rule
		}
		if rule != r["rule"] {
			t.Errorf("%s: want a refusal by %s, got one by %s: %v", r["what"], r["rule"], rule, err)
		}
	})
}

// holdEncoded sees to it that the writer's form of what was read is read again, as the same.
func holdEncoded(t *testing.T, r row, content, first []byte) {
	t.Helper()
	blocks, err := pem.Decode(content, pem.Rules{Labels: []string{"CERTIFICATE"}})
	if err != nil {
		t.Errorf("%s: %v", r["what"], err)
		return
	}
	again, err := pem.Decode(pem.Encode("CERTIFICATE", blocks[0].Bytes), pem.Rules{Labels: []string{"CERTIFICATE"}})
	if err != nil || string(again[0].Bytes) != string(first) {
		t.Errorf("%s: what was read and written again is not the same (%v)", r["what"], err)
	}
}

// TestHostilePEM holds the reader against texts that are too large to keep.
func TestHostilePEM(t *testing.T) {
	const begin, end = "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n"
	for name, text := range map[string]string{
		"ten thousand BEGIN":          strings.Repeat(begin, 10_000),
		"ten thousand END":            strings.Repeat(end, 10_000),
		"ten thousand blocks":         strings.Repeat(begin+"MAA=\n"+end, 10_000),
		"a block without an end":      begin + strings.Repeat("MAAA", 250_000),
		"a megabyte of CR":            strings.Repeat("\r", 1<<20),
		"a megabyte of hyphens":       strings.Repeat("-", 1<<20),
		"a megabyte of blanks":        begin + strings.Repeat(" ", 1<<19) + "\n" + end,
		"padding":                     begin + strings.Repeat("=", 1<<19) + "\n" + end,
		"a label without an end":      "-----BEGIN " + strings.Repeat("A", 1<<19) + "-----\n",
		"ten thousand bad boundaries": strings.Repeat("----BEGIN CERTIFICATE-----\n", 10_000),
	} {
		if _, err := chain.ParsePEM([]byte(text)); err == nil {
			t.Errorf("%s: ParsePEM accepts it", name)
		} else if len(err.Error()) > 500 {
			t.Errorf("%s: the error has %d octets", name, len(err.Error()))
		}
	}
}
