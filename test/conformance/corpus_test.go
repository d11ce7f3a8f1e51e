package main

import (
	"errors"
	"slices"
	"testing"
)

func TestScoresAndExplanations(t *testing.T) {
	accept := func() error { return nil }
	refuse := func() error { return errors.New("no") }
	r := corpus{
		name: "c",
		tests: []test{
			{name: "right", accept: true, ours: accept, standard: accept},
			{name: "lax", ours: accept, standard: func() error { return errNotApplicable }},
			{name: "strict", accept: true, ours: refuse},
			{name: "skipped", accept: true, ours: refuse, skip: "because"},
		},
		deviations: map[string]string{"lax": "on purpose", "right": "no longer"},
	}.run(false)
	if r.ours.right != 1 || !slices.Equal(r.ours.lax, []string{"lax"}) || !slices.Equal(r.ours.strict, []string{"strict"}) {
		t.Errorf("found %+v", r.ours)
	}
	if r.standard.right != 1 || r.standard.notApplicable != 2 || r.skipped["because"] != 1 {
		t.Errorf("found %+v, %v", r.standard, r.skipped)
	}
	if found := r.unexplained(); len(found) != 2 {
		t.Errorf("found %q", found)
	}
}
