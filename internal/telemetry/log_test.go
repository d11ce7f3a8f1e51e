package telemetry

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestLoggerWritesTheFormat(t *testing.T) {
	for format, want := range map[string]string{
		"json": `"level":"INFO","msg":"issued","serial":"01"}` + "\n",
		"text": `level=INFO msg=issued serial=01` + "\n",
	} {
		var out bytes.Buffer
		logger, err := Logger(&out, format, new(slog.LevelVar))
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("issued", "serial", "01")
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
	if _, err := Logger(&bytes.Buffer{}, "xml", new(slog.LevelVar)); err == nil {
		t.Error("accepts an unknown format")
	}
}

func TestLevelChangesAtOnce(t *testing.T) {
	var out bytes.Buffer
	var level slog.LevelVar
	logger, err := Logger(&out, "text", &level)
	if err != nil {
		t.Fatal(err)
	}
	logger.Debug("before")
	level.Set(slog.LevelDebug)
	logger.Debug("after")
	if got := out.String(); strings.Contains(got, "before") || !strings.Contains(got, "after") {
		t.Error(got)
	}
}

// TestAlways wants records that nobody may lose to come through whatever the level, and everything else not.
func TestAlways(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		var level slog.LevelVar
		level.Set(slog.LevelError + 4)
		logger, err := Logger(&out, format, &level)
		if err != nil {
			t.Fatal(err)
		}
		always := Always(logger.With("part", "ca"))
		logger.Error("lost")
		always.With("a", 1).WithGroup("g").Info("kept", "token", "hidden", "b", 2)
		logger.Error("lost")
		got := out.String()
		if strings.Contains(got, "lost") || strings.Contains(got, "hidden") || strings.Count(got, "\n") != 1 {
			t.Error(got)
		}
		for _, part := range []string{"kept", "part", "redacted"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s is missing: %s", part, got)
			}
		}
		if !always.Enabled(t.Context(), slog.LevelDebug) || logger.Enabled(t.Context(), slog.LevelError) {
			t.Error("the levels are mixed up")
		}
	}
	var out bytes.Buffer
	other := slog.New(slog.NewTextHandler(&out, nil))
	if Always(other) != other {
		t.Error("another's logger is changed")
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln"
	var nilURL *url.URL
	for name, test := range map[string]struct {
		attr   slog.Attr
		secret bool
	}{
		"token":                   {slog.String("token", "x"), true},
		"join token":              {slog.String("join_token", "x"), true},
		"camel case":              {slog.String("accessToken", "x"), true},
		"authorization":           {slog.Any("Authorization", []string{"x"}), true},
		"private key by name":     {slog.String("private-key", "x"), true},
		"HMAC key":                {slog.Any("hmac_key", []byte("x")), true},
		"private key by type":     {slog.Any("signer", key), true},
		"PEM by content":          {slog.String("file", "-----BEGIN EC PRIVATE KEY-----\n"), true},
		"PEM as bytes":            {slog.Any("data", []byte("-----BEGIN PRIVATE KEY-----")), true},
		"JWT by content":          {slog.String("value", "got "+jwt), true},
		"join token by content":   {slog.String("value", `profile "cjt_0123456789abcdef_c2VjcmV0"`), true},
		"second join token":       {slog.String("value", "cjt_0123456789abcdef cjt_0123456789abcdef_c2VjcmV0"), true},
		"join token's public ID":  {slog.String("value", "cjt_0123456789abcdef"), false},
		"JWT as a DNS name":       {slog.String("value", "DNS:"+strings.ToLower(jwt)), true},
		"JWT in an error":         {slog.Any("err", errors.New("reviewing "+jwt)), true},
		"JWT in a URL":            {slog.Any("url", &url.URL{Path: "/" + jwt}), true},
		"header in an error":      {slog.Any("err", errors.New(`header "Bearer 0123456789abcdef"`)), true},
		"inside a group":          {slog.Group("request", "token", "x"), true},
		"below such a group":      {slog.Group("token", "raw", "x"), true},
		"what points to a token":  {slog.String("token_id", "abc"), false},
		"what points to a key":    {slog.String("key_id", "abc"), false},
		"an item of a queue":      {slog.String("key", "ns/name"), false},
		"a certificate":           {slog.String("chain", "-----BEGIN CERTIFICATE-----"), false},
		"a sentence about Bearer": {slog.Any("err", errors.New("no Bearer token in the request")), false},
		"a number":                {slog.Int("serial", 7), false},
		"a duration":              {slog.Duration("age", time.Second), false},
		"an error":                {slog.Any("err", errors.New("disk full")), false},
		"a nil pointer":           {slog.Any("url", nilURL), false},
		"nil":                     {slog.Any("value", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"json", "text"} {
				var out bytes.Buffer
				logger, err := Logger(&out, format, new(slog.LevelVar))
				if err != nil {
					t.Fatal(err)
				}
				logger.Info("message", test.attr)
				if got := strings.Contains(out.String(), redacted); got != test.secret {
					t.Errorf("redacted is %t: %s", got, out.String())
				}
			}
		})
	}
}

func TestRedactedMessageStaysReadableJSON(t *testing.T) {
	var out bytes.Buffer
	logger, err := Logger(&out, "json", new(slog.LevelVar))
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("-----BEGIN PRIVATE KEY-----", "ok", true)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["msg"] != redacted || got["ok"] != true {
		t.Errorf("%v: %s", err, out.String())
	}
}
