package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// errNotApplicable is the answer of a reader that a case cannot be put to.
var errNotApplicable = errors.New("not applicable")

// test is one case: the question and what the corpus says.
type test struct {
	name   string
	accept bool   // what the corpus says
	skip   string // why the case is out of scope, for everybody
	// the readers; nil stands for not applicable
	ours, standard, openssl func() error
}

// corpus is a set of cases.
type corpus struct {
	name, about string
	tests       []test
	absent      string // why there are no cases
	// deviations are the cases that we answer otherwise than the corpus says, on purpose, with the reason.
	deviations map[string]string
}

// score counts a reader's answers.
type score struct {
	right         int
	lax, strict   []string // wrongly accepted, wrongly refused
	notApplicable int
}

func (s *score) wrong() int { return len(s.lax) + len(s.strict) }

func (s *score) add(t test, answer func() error) {
	if answer == nil {
		s.notApplicable++
		return
	}
	err := answer()
	switch accepted := err == nil; {
	case errors.Is(err, errNotApplicable):
		s.notApplicable++
	case accepted == t.accept:
		s.right++
	case accepted:
		s.lax = append(s.lax, t.name)
	default:
		s.strict = append(s.strict, t.name)
	}
}

// result is what came out of a corpus.
type result struct {
	corpus
	ours, standard, openssl score
	skipped                 map[string]int // by reason
}

// run puts every case in scope to every reader. OpenSSL is a process for each case, so those run beside the rest.
func (c corpus) run(withOpenSSL bool) result {
	r := result{corpus: c, skipped: make(map[string]int)}
	tests := make([]test, 0, len(c.tests))
	for _, t := range c.tests {
		if t.skip != "" {
			r.skipped[t.skip]++
			continue
		}
		if !withOpenSSL {
			t.openssl = nil
		}
		tests = append(tests, t)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for _, t := range tests {
			r.openssl.add(t, t.openssl)
		}
	})
	for _, t := range tests {
		r.ours.add(t, t.ours)
		r.standard.add(t, t.standard)
	}
	wait.Wait()
	return r
}

// unexplained returns our wrong answers without a reason, and the reasons without a wrong answer.
func (r result) unexplained() []string {
	var found []string
	wrong := slices.Concat(r.ours.lax, r.ours.strict)
	for _, name := range wrong {
		if _, ok := r.deviations[name]; !ok {
			found = append(found, fmt.Sprintf("%s: %s: answered otherwise than the corpus says, and no reason is written down", r.name, name))
		}
	}
	for name := range r.deviations {
		if !slices.Contains(wrong, name) && r.absent == "" {
			found = append(found, fmt.Sprintf("%s: %s: a deviation is written down, but the answer is right", r.name, name))
		}
	}
	slices.SortFunc(found, strings.Compare)
	return found
}
