package expression_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/internal/expression"
)

// caller is an object with one inside that may be absent.
type caller struct {
	id    string
	names []string
	pod   *pod
	life  time.Duration
	admin bool
	claim map[string]any
}

type pod struct{ name string }

func variables() []expression.Variable {
	return []expression.Variable{
		{Name: "claims", Kind: expression.Map},
		{Name: "word", Kind: expression.String, Size: 64},
		{Name: "caller", Kind: expression.Object, Fields: []expression.Variable{
			{Name: "id", Kind: expression.String, Size: 255, Get: func(o any) any { return o.(*caller).id }},
			{Name: "names", Kind: expression.Strings, Size: 253, Items: 100, Get: func(o any) any { return o.(*caller).names }},
			{Name: "life", Kind: expression.Duration, Get: func(o any) any { return o.(*caller).life }},
			{Name: "admin", Kind: expression.Bool, Get: func(o any) any { return o.(*caller).admin }},
			{Name: "claims", Kind: expression.Map, Get: func(o any) any { return o.(*caller).claim }},
			{Name: "pod", Kind: expression.Object, Get: func(o any) any {
				if p := o.(*caller).pod; p != nil {
					return p
				}
				return nil
			}, Fields: []expression.Variable{
				{Name: "name", Kind: expression.String, Size: 63, Get: func(o any) any { return o.(*pod).name }},
			}},
		}},
	}
}

func values() expression.Values {
	return expression.Values{
		"claims": map[string]any{"sub": "repo:a/b", "n": float64(7), "groups": []any{"x", "y"}, "nested": map[string]any{"deep": "er"}, "none": nil, "yes": true},
		"word":   "w",
		"caller": &caller{id: "spiffe://example.org/ns/a/sa/b", names: []string{"a.example.org", "b.example.org"}, pod: &pod{"p-1"}, life: time.Hour, admin: true,
			claim: map[string]any{"k": "v"}},
	}
}

func environment(t testing.TB) *expression.Environment {
	t.Helper()
	e, err := expression.NewEnvironment(variables()...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestHolds(t *testing.T) {
	e := environment(t)
	for source, want := range map[string]string{
		`true`: "true",
		`caller.id == "spiffe://example.org/ns/a/sa/b"`:                       "true",
		`caller.names == ["a.example.org","b.example.org"]`:                   "true",
		`caller.names.all(n, n.endsWith(".example.org"))`:                     "true",
		`caller.names.exists(n, n == "c")`:                                    "false",
		`caller.names.map(n, n.split(".")[0]) == ["a","b"]`:                   "true",
		`caller.names.filter(n, n > "a").map(n, n.size()).exists(s, s == 13)`: "true",
		`caller.pod.name == "p-1" && has(caller.pod) && has(caller.pod.name)`: "true",
		`caller.life <= duration("1h") && caller.life > duration("59m")`:      "true",
		`caller.admin`:                                           "true",
		`caller.claims.k == "v"`:                                 "true",
		`caller.claims["k"] == "v"`:                              "true",
		`caller.claims.x == "v"`:                                 "no such key: x",
		`has(caller.claims.x) && caller.claims.x == "v"`:         "false",
		`caller.claims.?x.orValue("v") == "v"`:                   "true",
		`caller.?pod.?name.orValue("none") == "p-1"`:             "true",
		`claims.yes`:                                             "true",
		`claims.sub`:                                             "it yielded a string and has to yield a bool",
		`claims.none`:                                            "it yielded a null_type and has to yield a bool",
		`claims.n == 7 && claims.n > 6`:                          "true",
		`claims.nested.deep == "er"`:                             "true",
		`"x" in claims.groups && !("z" in claims.groups)`:        "true",
		`claims.sub.nope == 1`:                                   "no such key: nope",
		`claims.groups[7] == "x"`:                                "index out of bounds: 7",
		`dyn(caller).id == caller.id`:                            "true",
		`dyn(caller).pod.name == "p-1"`:                          "true",
		`dyn(caller).nope == "p-1"`:                              "no such field: nope",
		`has(dyn(caller).pod)`:                                   "true",
		`dyn(caller) == dyn("a")`:                                "an object is not a value",
		`type(caller) == type(caller.pod)`:                       "false",
		`cidr("10.0.0.0/8").containsIP("10.1.2.3")`:              "true",
		`cidr("10.0.0.0/8").containsIP(word)`:                    "no such overload",
		`ip("::1").isLoopback() && isIP("1.2.3.4")`:              "true",
		`caller.id.matches("^spiffe://example[.]org/ns/[^/]+/")`: "true",
		`caller.id.find("/ns/[^/]+") == "/ns/a"`:                 "true",
		`url(caller.id).getHostname() == "example.org"`:          "true",
		`sets.contains(["a","w"], [word])`:                       "true",
		`!format.dns1123Label().validate(word).hasValue()`:       "true",
		`format.dns1123Label().validate("A.b").hasValue()`:       "true",
		`1/0 == 1`:                     "division by zero",
		`9223372036854775807 + 1 == 0`: "integer overflow",
		`word == "w" || 1/0 == 1`:      "true",
		`1/0 == 1 || word == "w"`:      "true",
		`1/0 == 1 && word == "v"`:      "false",
		`1/0 == 1 && word == "w"`:      "division by zero",
		`"a".replace("a", "b") == "b"`: "true",
		`int(word) == 1`:               "type conversion error",
		`timestamp("2026-01-01T00:00:00Z").getFullYear() == 2026`: "true",
		`word.charAt(9) == "w"`:                                   "index out of range: 9",
		`caller.names[0].substring(5) == "mple.org"`:              "true",
	} {
		t.Run(source, func(t *testing.T) {
			x, err := e.Compile(source, expression.Bool)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := x.Holds(t.Context(), values())
			result := fmt.Sprint(got)
			if err != nil {
				result = err.Error()
			}
			if got && err != nil || !strings.HasPrefix(result, want) && (err == nil || !strings.Contains(result, want)) {
				t.Errorf("got %s, want %s", result, want)
			}
		})
	}
}

func TestText(t *testing.T) {
	for source, want := range map[string]string{
		`claims.sub == "repo:a/b" ? "/ci/" + claims.sub.split(":")[1] : ""`: "/ci/a/b",
		`"/x/" + claims.nested.deep`:                                        "/x/er",
		`claims.sub`:                                                        "repo:a/b",
		`claims.?x.orValue("none")`:                                         "none",
		`claims["sub"]`:                                                     "repo:a/b",
		`""`:                                                                "",
		`["x", string(claims.sub)].map(g, "<" + g.substring(0, 1) + ">").join("-")`: "<x>-<r>",
		`claims.groups.filter(g, g > "x")[0]`:                                       "y",
		`string(claims.n)`:                                                          "7",
		`claims.n`:                                                                  "error: it yielded a double and has to yield a string",
		`claims.nope`:                                                               "error: no such key: nope",
		`claims.groups`:                                                             "error: it yielded a list and has to yield a string",
		`claims.long`:                                                               "error: it yielded a text of 2049 bytes; at most 2048",
		`claims.bad`:                                                                "error: it yielded a text that is not UTF-8",
	} {
		t.Run(source, func(t *testing.T) {
			x, err := expression.New(source, expression.String, expression.Variable{Name: "claims", Kind: expression.Map})
			if err != nil {
				t.Fatal(err)
			}
			v := values()
			claims := v["claims"].(map[string]any)
			claims["long"], claims["bad"] = strings.Repeat("a", 2049), "a\xff"
			got, err := x.Text(t.Context(), expression.Values{"claims": claims})
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != want && !(err != nil && strings.HasPrefix(got, want)) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	e := environment(t)
	long := func(s string, n int) string { return strings.Repeat(s, n) }
	for name, test := range map[string]struct{ source, want string }{
		"nothing":                        {"", "is empty"},
		"spaces":                         {" \n", "is empty"},
		"too long":                       {`"` + long("a", 4096) + `" == word`, "is 4106 bytes long; at most 4096"},
		"no UTF-8":                       {"word == '\xff'", "not UTF-8"},
		"half":                           {"word ==", "line 1, column 8: Syntax error"},
		"the second line":                {"word == 'a' ||\n  wrod == 'a'", "line 2, column 3: undeclared reference to 'wrod'"},
		"two mistakes":                   {"wrod == 'a' || dorw == 'a'", "'wrod' (in container ''); line 1, column 16: undeclared reference to 'dorw'"},
		"an unknown field":               {"caller.nme == 'a'", "line 1, column 7: undefined field 'nme'"},
		"an unknown field of one inside": {"caller.pod.nme == 'a'", "line 1, column 11: undefined field 'nme'"},
		"has an unknown field":           {"has(caller.nme)", "undefined field 'nme'"},
		"an unknown function":            {"word.reverse() == ''", "undeclared reference to 'reverse'"},
		"other types":                    {"word == 1", "found no matching overload for '_==_' applied to '(string, int)'"},
		"a number":                       {"1 + 1", "it has to yield a bool and yields a int"},
		"an object":                      {"caller", "it has to yield a bool and yields a object caller"},
		"an object made":                 {"google.protobuf.Struct{} == caller.claims", "an expression makes no objects"},
		"no macro over an object":        {"caller.all(c, c == 'a')", "cannot be range of a comprehension"},
		"a macro over a text":            {"word.all(c, c == 'a')", "cannot be range of a comprehension"},
		"a mixed list":                   {"word in ['a', 1]", "expected type 'string' but found 'int'"},
		"a bad pattern":                  {"word.matches('(')", "invalid matches argument"},
		"a bad duration":                 {"caller.life < duration('1x')", "invalid duration argument"},
		"the time":                       {"timestamp('2026-01-01T00:00:00Z') < now", "undeclared reference to 'now'"},
		"format":                         {"'%s'.format([word]) == ''", "undeclared reference to 'format'"},
		"bind":                           {"cel.bind(a, word, a == word)", "undeclared reference to 'cel'"},
		"a name that is taken":           {"caller.names.all(word, word == 'a')", `line 1, column 17: "word" is a variable already`},
		"parentheses":                    {long("(", 300) + "true" + long(")", 300), "recursion"},
		"conditionals":                   {long("true?true:", 300) + "true", "recursion"},
		"a chain":                        {"word" + long("+word", 500) + " == ''", "recursion"},
		"a deep list":                    {long("[", 200) + long("]", 200) + " == []", "recursion"},
		"macros, three deep":             {"caller.names.all(a, caller.names.all(b, caller.names.all(c, a == b || b == c)))", "it could cost"},
		"macros, four deep":              {"[1].all(a, [1].all(b, [1].all(c, [1].all(d, a+b+c+d == 4))))", "more than 3 deep"},
		"macros in a row":                {`["a"]` + long(".map(a, a + a)", 4) + "[0] == ''", "more than 3 deep"},
		"claims by claims":               {"claims.a.all(a, claims.b.all(b, a == b))", "it could cost"},
		"a pattern of claims":            {"caller.names.all(a, a.matches(claims.x))", "it could cost"},
		"replacing with much":            {`"` + long("a", 500) + `".replace("", "` + long("a", 500) + `").replace("", "` + long("a", 500) + `") == ""`, "it could cost"},
		"replacing, in a macro":          {`["` + long("a", 900) + `"].map(a, a.replace("", a)).map(a, a.replace("", a))[0] == ""`, "it could cost"},
		"replacing with claims":          {`claims.x.replace("", claims.y) == ""`, "it could cost"},
		"joining much":                   {`["a"]` + long(".map(a, ["+long("a,", 600)+"a].join())", 3) + `[0] == ""`, "it could cost"},
		"sets of claims":                 {`sets.intersects(claims.a, claims.b)`, "it could cost"},
		"sets of pieces":                 {`["` + long("a", 1500) + `"].map(a, sets.contains(a.split(""), a.split("") + a.split("")))[0]`, "it could cost"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := e.Compile(test.source, expression.Bool)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("the error has several lines: %q", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
	if _, err := e.Compile("true", expression.Map); err == nil {
		t.Error("a result of an unknown kind is taken")
	}
}

// TestCostIsCounted evaluates over values that are larger than declared, so that the estimate does not hold.
func TestCostIsCounted(t *testing.T) {
	x, err := environment(t).Compile(`caller.names.all(a, caller.names.all(b, a == b))`, expression.Bool)
	if err != nil {
		t.Fatal(err)
	}
	many := &caller{}
	for range 30 {
		many.names = append(many.names, strings.Repeat("a", 1<<20))
	}
	v := values()
	v["caller"] = many
	holds, cost, err := x.Holds(t.Context(), v)
	if holds || err == nil || !strings.Contains(err.Error(), "cost limit exceeded") || cost < expression.MaxCost {
		t.Errorf("got %t at a cost of %d, %v", holds, cost, err)
	}
}

// TestInterrupted wants an evaluation to end soon after its context.
func TestInterrupted(t *testing.T) {
	x, err := environment(t).Compile(`caller.names.all(a, caller.names.all(b, a != b + "x"))`, expression.Bool)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	watched := expression.Values{"caller": &caller{names: make([]string, 300)}}
	w, err := expression.New(`caller.names.all(a, caller.names.all(b, a != b + "x"))`, expression.Bool, expression.Variable{
		Name: "caller", Kind: expression.Object, Fields: []expression.Variable{{Name: "names", Kind: expression.Strings, Size: 64, Get: func(o any) any {
			if reads++; reads == 20 {
				cancel()
			}
			return o.(*caller).names
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, cost, err := w.Holds(ctx, watched); !errors.Is(err, context.Canceled) || cost > expression.MaxCost/2 {
		t.Errorf("got %v at a cost of %d, after %d reads", err, cost, reads)
	}
	if reads > 22 {
		t.Errorf("it read on %d times", reads-20)
	}
	if _, _, err := x.Holds(ctx, values()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestReads(t *testing.T) {
	for source, want := range map[string][]string{
		`caller.id == word`:                          {"id"},
		`has(caller.id)`:                             nil,
		`caller.names.all(n, n == caller.pod.name)`:  {"names", "pod"},
		`caller.?id.orValue("") == word`:             {"id"},
		`dyn(caller).id == word`:                     nil,
		`[caller].exists(c, c.id == word)`:           nil,
		`word == "" ? caller.admin : has(caller.id)`: {"admin"},
	} {
		x, err := environment(t).Compile(source, expression.Bool)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		for _, field := range []string{"id", "names", "pod", "admin", "life"} {
			if got := x.Reads("caller", field); got != slices.Contains(want, field) {
				t.Errorf("%s reads %s: %t", source, field, got)
			}
		}
		if x.Source() != source || x.Cost() == 0 {
			t.Errorf("it is %q at %d", x.Source(), x.Cost())
		}
	}
}

// TestAbsent reads from an object that is not there.
func TestAbsent(t *testing.T) {
	x, err := environment(t).Compile(`!has(caller.pod) && caller.pod.name == "" && caller.claims == {} && !has(caller.id) && caller.names == [] && !caller.admin && caller.life == duration("0s")`, expression.Bool)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]expression.Values{"empty": {"caller": &caller{}}, "nil": {"caller": nil}} {
		if holds, _, err := x.Holds(t.Context(), v); !holds || err != nil {
			t.Errorf("%s: %t, %v", name, holds, err)
		}
	}
	if _, _, err := x.Holds(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "caller") {
		t.Errorf("without a value: %v", err)
	}
}

func TestNewEnvironmentRefuses(t *testing.T) {
	getter := func(any) any { return nil }
	for name, v := range map[string]expression.Variable{
		"no name":                {Kind: expression.Bool},
		"no kind":                {Name: "a"},
		"a getter on top":        {Name: "a", Kind: expression.Bool, Get: getter},
		"an object of nothing":   {Name: "a", Kind: expression.Object},
		"fields of a text":       {Name: "a", Kind: expression.String, Fields: []expression.Variable{{Name: "b", Kind: expression.Bool, Get: getter}}},
		"a field without getter": {Name: "a", Kind: expression.Object, Fields: []expression.Variable{{Name: "b", Kind: expression.Bool}}},
	} {
		if _, err := expression.NewEnvironment(v); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAtOnce(t *testing.T) {
	x, err := environment(t).Compile(`caller.names.all(n, n.endsWith(".example.org")) && claims.sub.matches("^repo:") && caller.pod.name == word`, expression.Bool)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			v := values()
			v["word"] = fmt.Sprintf("p-%d", i)
			for range 100 {
				if holds, _, err := x.Holds(t.Context(), v); err != nil || holds != (i == 1) {
					t.Errorf("%d: %t, %v", i, holds, err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzExpression holds compilation and evaluation to rules: neither panics nor takes long, an error is one line, an evaluation costs no more than its
// estimate, twice gives the same, and what holds is a bool.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`true`, `caller.names.all(n, n == word)`, `claims.x.y[0] == 1`, `caller.?pod.?name.orValue("") != ""`, `ip(word).family() == 4`, `cidr(word).containsIP(word)`,
		`url(word).getHost() == word`, `claims.all(k, claims[k] == k)`, `[1, 2].map(x, x * 2) == [2, 4]`, `["a"].map(a, a + a).map(a, a + a)[0] == word`,
		`word.replace("a", "bb").split("b").join("c") == word`, `word.find("[a-z]+") in caller.names`, `caller.life > duration("1s") ? 1/0 == 1 : has(claims.x)`,
		`format.dns1123Label().validate(word).value() == []`, `sets.equivalent(caller.names, [word])`, `dyn(caller) == dyn(claims)`, `type(caller) == type(1)`,
		`string(timestamp("2026-01-01T00:00:00Z").getHours("Europe/Berlin")) == ""`, `b"a" == bytes(word)`, `optional.of(word).hasValue()`, `claims.n.map(x, x)[0]`,
		`{"a": caller}.a.id == word`, `[[1]].map(a, a + a).map(a, a + a)[0].size() == 4`, `claims.groups.sum() == ""`, `caller.names.isSorted()`,
	} {
		f.Add(seed, "w")
	}
	e, err := expression.NewEnvironment(variables()...)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source, word string) {
		if len(word) > 64 {
			return // longer than it is declared
		}
		began := time.Now()
		x, err := e.Compile(source, expression.Bool)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 2000 {
				t.Errorf("the error is %q", err)
			}
			return
		}
		v := values()
		v["word"] = word
		holds, cost, err := x.Holds(t.Context(), v)
		again, _, errAgain := x.Holds(t.Context(), v)
		if holds != again || (err == nil) != (errAgain == nil) || holds && err != nil {
			t.Errorf("%t, %v and then %t, %v", holds, err, again, errAgain)
		}
		if cost > x.Cost()+1 {
			t.Errorf("it cost %d, estimated as %d at most", cost, x.Cost())
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	for _, source := range []string{`caller.id == word`, `caller.names.all(n, n.endsWith(".example.org"))`, `caller.names.all(n, n.matches("^[a-z]+[.]example[.]org$"))`} {
		b.Run(source, func(b *testing.B) {
			x, err := environment(b).Compile(source, expression.Bool)
			if err != nil {
				b.Fatal(err)
			}
			v := values()
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := x.Holds(b.Context(), v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
