package tokenreview

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// withKey is a set of a good P-256 key and one more.
func withKey(edit func(jwk map[string]any), from *testKey) string {
	jwk := from.jwk()
	edit(jwk)
	return string(must(json.Marshal(map[string]any{"keys": []any{theKeys().p256.jwk(), jwk}})))
}

// closeProduct is the product of two primes of some bits that stand side by side.
func closeProduct(bits int) *big.Int {
	p := new(big.Int).Lsh(big.NewInt(3), uint(bits)-2)
	next := func() *big.Int {
		for p.Add(p, big.NewInt(1)); !p.ProbablyPrime(0); p.Add(p, big.NewInt(1)) {
		}
		return new(big.Int).Set(p)
	}
	return new(big.Int).Mul(next(), next())
}

func number(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }

func TestParseKeySet(t *testing.T) {
	keys := theKeys()
	set := func(name string, value any) string {
		return withKey(func(k map[string]any) { k[name] = value }, keys.rsa)
	}
	ec := func(edit func(k map[string]any)) string { return withKey(edit, keys.p384) }
	modulus := func(bits int, edit func(*big.Int)) string {
		n := new(big.Int).Lsh(big.NewInt(1), uint(bits)-1)
		for n.SetBit(n, 0, 1); keypolicy.CheckModulus(n) != nil; n.Add(n, big.NewInt(2)) { // until nothing is wrong with it but the size
		}
		if edit != nil {
			edit(n)
		}
		return set("n", number(n))
	}
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	p224Point := must(p224.PublicKey.Bytes())
	p384Point := must(keys.p384.signer.Public().(*ecdsa.PublicKey).Bytes())
	coordinate := func(octets []byte) string { return base64.RawURLEncoding.EncodeToString(octets) }
	many := func(n int) string {
		list := []any{}
		for i := range n {
			jwk := keys.p256.jwk()
			jwk["kid"] = fmt.Sprint(i)
			list = append(list, jwk)
		}
		return string(must(json.Marshal(map[string]any{"keys": list})))
	}
	for name, test := range map[string]struct {
		text string
		keys int    // that are of use
		want string // of the error
	}{
		"all kinds":                       {string(setOf(keys.published()...)), 5, ""},
		"alg null":                        {set("alg", nil), 1, ""}, // a null is no text
		"alg left out":                    {withKey(func(k map[string]any) { delete(k, "alg"); delete(k, "use") }, keys.rsa), 2, ""},
		"without kid":                     {withKey(func(k map[string]any) { delete(k, "kid") }, keys.rsa), 2, ""},
		"kid twice in the set":            {string(setOf(keys.rsa, keys.stranger)), 2, ""},
		"unknown members":                 {set("since", 1), 2, ""},
		"unknown members of the set":      {`{"next":1,` + string(setOf(keys.rsa))[1:], 1, ""},
		"64 keys":                         {many(64), 64, ""},
		"65 keys":                         {many(65), 0, "at most 64"},
		"key_ops verify":                  {set("key_ops", []string{"verify"}), 2, ""},
		"RSA of 2056 bits":                {modulus(2056, nil), 2, ""},
		"RSA of 2048 bits":                {modulus(2048, nil), 2, ""},
		"RSA of 2048 bits, 3 as a factor": {modulus(2048, func(n *big.Int) { n.Lsh(big.NewInt(1), 2047).SetBit(n, 0, 1) }), 1, ""},
		"RSA of 2048 bits, close factors": {set("n", number(closeProduct(1024))), 1, ""},
		"RSA of 8192 bits":                {modulus(8192, nil), 2, ""},
		"RSA of 2047 bits":                {modulus(2047, nil), 1, ""},
		"RSA of 1024 bits":                {modulus(1024, nil), 1, ""},
		"RSA of 8193 bits":                {modulus(8193, nil), 1, ""},
		"RSA with an even modulus":        {modulus(2056, func(n *big.Int) { n.SetBit(n, 0, 0) }), 1, ""},
		"RSA with exponent 1":             {set("e", "AQ"), 1, ""},
		"RSA with exponent 2":             {set("e", "Ag"), 1, ""},
		"RSA with exponent 0":             {set("e", "AA"), 1, ""},
		"RSA with exponent 3":             {set("e", "Aw"), 1, ""},
		"RSA with exponent 2^31":          {set("e", "gAAAAA"), 1, ""},
		"RSA with exponent 2^31+1":        {set("e", "gAAAAQ"), 1, ""},
		"RSA with an exponent of 9 bytes": {set("e", "AQAAAAAAAAAB"), 1, ""},
		"RSA without exponent":            {withKey(func(k map[string]any) { delete(k, "e") }, keys.rsa), 1, ""},
		"RSA without modulus":             {withKey(func(k map[string]any) { delete(k, "n") }, keys.rsa), 1, ""},
		"RSA with a modulus in base64":    {set("n", "++//"), 1, ""},
		"use enc":                         {set("use", "enc"), 1, ""},
		"use in another case":             {set("use", "SIG"), 1, ""},
		"use null":                        {set("use", nil), 1, ""},
		"key_ops with sign":               {set("key_ops", []string{"sign", "verify"}), 1, ""},
		"key_ops empty":                   {set("key_ops", []string{}), 1, ""},
		"key_ops a text":                  {set("key_ops", 1), 1, ""},
		"alg RS384":                       {set("alg", "RS384"), 1, ""},
		"alg PS256":                       {set("alg", "PS256"), 1, ""},
		"alg ES256 for RSA":               {set("alg", "ES256"), 1, ""},
		"alg HS256 for RSA":               {set("alg", "HS256"), 1, ""},
		"alg none":                        {set("alg", "none"), 1, ""},
		"kid a number":                    {set("kid", 1), 1, ""},
		"kid of 2 KiB":                    {set("kid", strings.Repeat("k", 2<<10)), 1, ""},
		"kty unknown":                     {set("kty", "XYZ"), 1, ""},
		"kty missing":                     {withKey(func(k map[string]any) { delete(k, "kty") }, keys.rsa), 1, ""},
		"kty EC for RSA":                  {set("kty", "EC"), 1, ""},
		"x5c, which nobody reads":         {set("x5c", []string{"AAAA"}), 2, ""},
		"Ed25519": {withKey(func(k map[string]any) {
			clear(k)
			k["kty"], k["crv"], k["x"] = "OKP", "Ed25519", coordinate(make([]byte, 32))
		}, keys.rsa), 1, ""},
		"P-224": {ec(func(k map[string]any) {
			delete(k, "alg")
			k["crv"], k["x"], k["y"] = "P-224", coordinate(p224Point[1:29]), coordinate(p224Point[29:])
		}), 1, ""},
		"secp256k1":                   {ec(func(k map[string]any) { k["crv"] = "secp256k1" }), 1, ""},
		"P-384 called P-256":          {ec(func(k map[string]any) { k["crv"] = "P-256"; delete(k, "alg") }), 1, ""},
		"a point off the curve":       {ec(func(k map[string]any) { k["y"] = coordinate(append(slices.Clone(p384Point[49:96]), p384Point[96]^1)) }), 1, ""},
		"a point of zeros":            {ec(func(k map[string]any) { k["x"], k["y"] = coordinate(make([]byte, 48)), coordinate(make([]byte, 48)) }), 1, ""},
		"a coordinate too short":      {ec(func(k map[string]any) { k["x"] = coordinate(p384Point[2:49]) }), 1, ""},
		"a coordinate too long":       {ec(func(k map[string]any) { k["x"] = coordinate(append([]byte{0}, p384Point[1:49]...)) }), 1, ""},
		"alg ES256 for P-384":         {ec(func(k map[string]any) { k["alg"] = "ES256" }), 1, ""},
		"a private key of RSA":        {set("d", "AQAB"), 0, "private or shared"},
		"a prime":                     {set("p", "AQAB"), 0, "private or shared"},
		"an empty private member":     {set("d", ""), 0, "private or shared"},
		"a shared key":                {withKey(func(k map[string]any) { clear(k); k["kty"], k["k"] = "oct", "AAAA" }, keys.rsa), 0, "private or shared"},
		"a private key for something": {withKey(func(k map[string]any) { k["use"], k["d"] = "enc", "AAAA" }, keys.p256), 0, "private or shared"},
		"a member twice":              {strings.Replace(string(setOf(keys.rsa)), `"e":`, `"e":"AQAB","e":`, 1), 0, "has a member twice"},
		"keys twice":                  {`{"keys":[],` + string(setOf(keys.rsa))[1:], 0, "has a member twice"},
		"no keys":                     {`{"keys":[]}`, 0, "no key for the algorithms"},
		"only keys of no use":         {`{"keys":[{"kty":"XYZ"}]}`, 0, "no key for the algorithms"},
		"keys null":                   {`{"keys":null}`, 0, "no list keys"},
		"keys an object":              {`{"keys":{}}`, 0, "no list keys"},
		"keys missing":                {`{}`, 0, "no list keys"},
		"Keys in another case":        {strings.Replace(string(setOf(keys.rsa)), `"keys"`, `"Keys"`, 1), 0, "no list keys"},
		"a key that is a text":        {`{"keys":["` + keys.rsa.id + `"]}`, 0, "is not a JSON object"},
		"a key that is null":          {`{"keys":[null]}`, 0, "is not a JSON object"},
		"a single key":                {string(must(json.Marshal(keys.rsa.jwk()))), 0, "no list keys"},
		"a PEM":                       {string(keys.rsa.pem()), 0, "is not JSON"},
		"a page":                      {"<!DOCTYPE html>", 0, "is not JSON"},
		"nothing":                     {"", 0, "is not JSON"},
		"text behind":                 {string(setOf(keys.rsa)) + "{}", 0, "is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := parseKeySet([]byte(test.text))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			if err != nil || len(set) != test.keys {
				t.Errorf("%d keys, %v; want %d", len(set), err, test.keys)
			}
		})
	}
}

// TestKeysOfOneName holds that each key of a name that stands twice in a set is tried, and no more than a few for a token that names none.
func TestKeysOfOneName(t *testing.T) {
	keys := theKeys()
	set := must(parseKeySet(setOf(keys.rsa, keys.stranger)))
	for _, key := range []*testKey{keys.rsa, keys.stranger} {
		if !signedBy(key.token(nil), "RS256", set.find("key-rsa", "RS256")) {
			t.Error("a token by one of two keys of a name is refused")
		}
	}
	var list []*testKey
	for range maxKeys {
		list = append(list, keys.p256)
	}
	set = must(parseKeySet(setOf(list...)))
	for _, id := range []string{"", keys.p256.id} {
		if found := set.find(id, "ES256"); len(found) != maxAnonymous {
			t.Errorf("%d keys are tried for %q", len(found), id)
		}
	}
	if found := set.find("", "RS256"); len(found) != 0 {
		t.Errorf("%d keys of another type are tried", len(found))
	}
}

// verdict presents a token signed by key to keys.
func (k *testKey) verdict(t *testing.T, keys *KeySet) error {
	t.Helper()
	token := k.token(nil)
	err := keys.verify(t.Context(), token, must(parseShape(token)))
	noLeak(t, token, err)
	return err
}

// TestKeysAreReplaced holds that a new key works at once, that a key that was taken away is refused after the next look, and that a source that fails or
// talks nonsense changes nothing.
func TestKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, source := theKeys(), newFakeSource(setOf(theKeys().rsa))
		var log bytes.Buffer
		metrics := must(NewKeyMetrics(prometheus.NewPedanticRegistry()))
		set := must(NewKeySet(source.source(), KeySetConfig{Name: "east"}, slog.New(slog.NewTextHandler(&log, nil)), metrics))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- set.Run(ctx) }()
		synctest.Wait()
		good := func(key *testKey) {
			t.Helper()
			if err := key.verdict(t, set); err != nil {
				t.Error(err)
			}
		}
		refused := func(key *testKey) {
			t.Helper()
			if err := key.verdict(t, set); errkind.ReasonOf(err) != errkind.BadSignature {
				t.Errorf("%v", err)
			}
		}
		well := func(want bool) {
			t.Helper()
			if ok, _, reason := set.Health(); ok != want || ok != (reason == "") {
				t.Errorf("health %v %q, want %v", ok, reason, want)
			}
		}
		good(keys.rsa)
		refused(keys.stranger)
		well(true)
		source.set(setOf(keys.rsa, keys.p256), nil)
		time.Sleep(refetchEvery) //nolint:forbidigo // the clock of the bubble
		good(keys.p256)          // looked for when it was needed
		source.set(setOf(keys.p256), nil)
		good(keys.rsa)                               // until the next look
		time.Sleep(refreshRemote + refreshRemote/10) //nolint:forbidigo // the clock of the bubble
		refused(keys.rsa)
		good(keys.p256)
		if n := testutil.ToFloat64(metrics.keys.WithLabelValues("east")); n != 1 {
			t.Errorf("%v keys", n)
		}

		for _, fault := range []func(){
			func() { source.set(nil, errors.New("connection refused")) },
			func() { source.set([]byte(`{"keys":[]}`), nil) },
			func() { source.set([]byte(`<html>`), nil) },
		} {
			fault()
			time.Sleep(2 * refreshRemote) //nolint:forbidigo // the clock of the bubble
			well(false)
			good(keys.p256)
		}
		source.set(setOf(keys.p384), nil)
		time.Sleep(2 * retryFetch) //nolint:forbidigo // the clock of the bubble
		well(true)
		refused(keys.p256)
		good(keys.p384)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "key-p256") || strings.Count(log.String(), "ERROR") > 32 {
			t.Errorf("the log says\n%s", &log)
		}
		for result, least := range map[string]float64{fetchOK: 3, fetchUnreachable: 2, fetchMalformed: 4} {
			if n := testutil.ToFloat64(metrics.fetches.WithLabelValues("east", result)); n < least {
				t.Errorf("%v looks are %s", n, result)
			}
		}
	})
}

// TestMadeUpKeysCostNothing holds how often a flood of tokens that name unknown keys makes us look at the source.
func TestMadeUpKeysCostNothing(t *testing.T) {
	c := &clock{now: start}
	source := newFakeSource(setOf(theKeys().rsa))
	set := must(NewKeySet(source.source(), KeySetConfig{Name: "local", Now: c.Now}, nil, nil))
	if err := set.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	const seconds, each = 60, 200
	for i := range seconds * each {
		c.set(start.Add(time.Duration(i) * time.Second / each))
		if _, err := set.find(t.Context(), fmt.Sprintf("made-up-%d", i), "RS256"); err != nil {
			t.Fatal(err) // no key is found, and that is for good
		}
	}
	if looks, most := source.count(), 1+refetchBurst+seconds/5; looks > most {
		t.Errorf("%d looks for %d tokens in %d s, want at most %d", looks, seconds*each, seconds, most)
	} else {
		t.Logf("%d looks for %d tokens in %d s", looks, seconds*each, seconds)
	}
	if n := testutil.ToFloat64(set.metrics.unknown.WithLabelValues("local")); n != seconds*each {
		t.Errorf("%v were counted", n)
	}
	before := source.count()
	c.set(start.Add(time.Hour))
	for _, kid := range []string{"", "key-rsa"} { // known, or nothing that could be looked for
		if found, err := set.find(t.Context(), kid, "ES256"); err != nil || len(found) != 0 {
			t.Errorf("%q: %v %v", kid, found, err)
		}
	}
	if source.count() != before {
		t.Error("a token of another algorithm made us look")
	}
}

// TestMadeUpKeysWhileTheIssuerIsAway holds the same while the source fails: then nobody is refused for good.
func TestMadeUpKeysWhileTheIssuerIsAway(t *testing.T) {
	c := &clock{now: start}
	source := newFakeSource(setOf(theKeys().rsa))
	set := must(NewKeySet(source.source(), KeySetConfig{Name: "local", Now: c.Now}, nil, nil))
	if err := set.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.set(nil, errors.New("connection refused"))
	if _, err := set.find(t.Context(), "made-up", "RS256"); errkind.ReasonOf(err) != errkind.IssuerUnavailable { // however young the set is
		t.Errorf("%v", err)
	}
	for i := range 6000 {
		c.set(start.Add(time.Minute + time.Duration(i)*10*time.Millisecond))
		_, err := set.find(t.Context(), fmt.Sprintf("made-up-%d", i), "RS256")
		if errkind.Of(err) != errkind.Unavailable || errkind.ReasonOf(err) != errkind.IssuerUnavailable || errkind.RetryAfter(err) <= 0 {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if looks := source.count(); looks > 2+refetchBurst+12 {
		t.Errorf("%d looks", looks)
	}
	if keys, err := set.find(t.Context(), "key-rsa", "RS256"); err != nil || len(keys) != 1 {
		t.Errorf("the keys that we have: %v %v", keys, err)
	}
}

// TestOneLookServesAllWhoNeedIt has many callers with a new key at once, and an issuer that takes its time.
func TestOneLookServesAllWhoNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, source := theKeys(), newFakeSource(setOf(theKeys().rsa))
		set := must(NewKeySet(source.source(), KeySetConfig{Name: "local"}, nil, nil))
		if err := set.fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(refetchEvery) //nolint:forbidigo // the clock of the bubble
		token := keys.p256.token(nil)
		parsed := must(parseShape(token))
		source.set(setOf(keys.rsa, keys.p256), nil)
		source.block = make(chan struct{})
		var good, turnedAway atomic.Int64
		var callers sync.WaitGroup
		for range 2 * maxWaiting {
			callers.Go(func() {
				switch err := set.verify(t.Context(), token, parsed); {
				case err == nil:
					good.Add(1)
				case errkind.Of(err) == errkind.Unavailable:
					turnedAway.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		if err := keys.rsa.verdict(t, set); err != nil {
			t.Errorf("a token of a known key waits: %v", err)
		}
		if err := set.fetch(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an impatient caller: %v", err)
		}
		close(source.block)
		callers.Wait()
		if source.count() != 2 || good.Load() != maxWaiting || turnedAway.Load() != maxWaiting {
			t.Errorf("%d looks, %d good, %d turned away", source.count(), good.Load(), turnedAway.Load())
		}
		if err := set.verify(t.Context(), token, parsed); err != nil {
			t.Error(err)
		}
	})
}

// TestASourceThatHangs holds that nobody waits longer than fetchTimeout.
func TestASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeSource(nil)
		source.block = make(chan struct{})
		set := must(NewKeySet(source.source(), KeySetConfig{Name: "local"}, nil, nil))
		began := time.Now()
		err := theKeys().rsa.verdict(t, set)
		if took := time.Since(began); took != fetchTimeout || errkind.Of(err) != errkind.Unavailable {
			t.Errorf("after %s: %v", took, err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err := set.find(impatient, "key-rsa", "RS256"); time.Since(began) != time.Second || errkind.Of(err) != errkind.Unavailable {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(fetchTimeout) //nolint:forbidigo // the clock of the bubble: the look ends after its caller has gone
	})
}

// TestKeysAreReplacedWhileCallersVerify has keys come and go under callers; the race detector looks on.
func TestKeysAreReplacedWhileCallersVerify(t *testing.T) {
	keys := theKeys()
	source := newFakeSource(setOf(keys.rsa, keys.p256))
	set := must(NewKeySet(source.source(), KeySetConfig{Name: "local"}, nil, nil))
	if err := set.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := must(identity.NewPath(trustDomain, "local", identity.DefaultPath))
	offline := must(NewOffline(OfflineConfig{
		Cluster: "local", Identity: path, Issuer: testIssuer, Audiences: []string{"chancery"}, Now: func() time.Time { return start },
	}, set, nil, nil, nil))
	steady, coming := keys.p256.token(nil), keys.rsa.token(nil)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var calls atomic.Int64
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, err := offline.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(steady)}); err != nil {
					t.Errorf("a key that is always there: %v", err)
					return
				}
				if _, _, err := offline.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(coming)}); err != nil && errkind.ReasonOf(err) != errkind.BadSignature {
					t.Errorf("a key that comes and goes: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for i := range 200 {
		if i%2 == 0 {
			source.set(setOf(keys.p256), nil)
		} else {
			source.set(setOf(keys.p384, keys.rsa, keys.p256), nil)
		}
		if err := set.fetch(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	callers.Wait()
	if calls.Load() == 0 {
		t.Error("nobody called")
	}
}

func TestNewKeySetRefuses(t *testing.T) {
	if _, err := NewKeySet(KeySource{}, KeySetConfig{Name: "local"}, nil, nil); err == nil {
		t.Error("without a source")
	}
	if _, err := NewKeySet(KeysFromFile("/keys"), KeySetConfig{}, nil, nil); err == nil {
		t.Error("without a name")
	}
	registry := prometheus.NewRegistry()
	if _, err := NewKeyMetrics(registry); err != nil {
		t.Error(err)
	}
	if _, err := NewKeyMetrics(registry); err == nil {
		t.Error("metrics registered twice")
	}
}

// FuzzParseKeySet holds that a key that is taken is of a type, size and use that we accept, in every text that parses, and that a set is read the same
// way again when it is written anew.
func FuzzParseKeySet(f *testing.F) {
	keys := theKeys()
	f.Add(setOf(keys.published()...))
	f.Add(setOf(keys.p521))
	f.Add([]byte(withKey(func(k map[string]any) { k["e"], k["use"] = "Aw", "sig" }, keys.rsa)))
	f.Add([]byte(withKey(func(k map[string]any) { k["d"] = "AQAB" }, keys.rsa)))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""},null,1]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := parseKeySet(text)
		if err != nil {
			if set != nil {
				t.Fatal("keys and an error")
			}
			return
		}
		if len(set) == 0 || len(set) > maxKeys {
			t.Fatalf("%d keys", len(set))
		}
		var raw struct{ Keys []map[string]any }
		if err := json.Unmarshal(text, &raw); err != nil {
			t.Fatal(err)
		}
		for _, key := range set {
			switch public := key.public.(type) {
			case *rsa.PublicKey:
				if key.algorithm != "RS256" || public.N.BitLen() < 2048 || public.N.BitLen() > 8192 || public.E != 65537 {
					t.Fatalf("took %s of %d bits, exponent %d", key.algorithm, public.N.BitLen(), public.E)
				}
			case *ecdsa.PublicKey:
				if _, err := public.ECDH(); err != nil { // checks that the point is on the curve
					t.Fatal(err)
				}
				if want := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[public.Params().BitSize]; key.algorithm != want {
					t.Fatalf("took %s for %s", key.algorithm, public.Params().Name)
				}
			default:
				t.Fatalf("took a %T", key.public)
			}
			if !slices.ContainsFunc(raw.Keys, func(k map[string]any) bool {
				id, _ := k["kid"].(string)
				return id == key.id && (k["use"] == nil || k["use"] == "sig") && (k["alg"] == nil || k["alg"] == key.algorithm) && k["d"] == nil && k["k"] == nil
			}) {
				t.Fatalf("took %q %s out of %s", key.id, key.algorithm, text)
			}
		}
	})
}
