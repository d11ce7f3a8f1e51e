package tokenreview

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestGoneUIDs(t *testing.T) {
	var g goneUIDs
	if g.has("") || g.has("a") {
		t.Error("the zero value has something")
	}
	g.add("")
	for i := range maxGone + 10 {
		uid := fmt.Sprint(i)
		g.add(uid)
		g.add(uid)
		if !g.has(uid) {
			t.Fatalf("%s is not there", uid)
		}
	}
	if g.has("") || g.has("9") || !g.has("10") || len(g.uids) != maxGone || len(g.order) != maxGone {
		t.Errorf("%d UIDs in %d places; the oldest ten are to make room", len(g.uids), len(g.order))
	}
}

// TestWhatCountsAsGone holds that only an object that was in the table, and went, is gone.
func TestWhatCountsAsGone(t *testing.T) {
	table := newTable(true)
	one, again, other := podRecord(t, "cart-x", "pod-1"), podRecord(t, "cart-x", "pod-2"), podRecord(t, "cart-y", "pod-3")
	expect := func(when string, gone ...string) {
		t.Helper()
		for _, uid := range []string{"pod-1", "pod-2", "pod-3", "pod-8", ""} {
			want := false
			for _, g := range gone {
				want = want || g == uid
			}
			if table.went(uid) != want {
				t.Errorf("%s: %q gone: %v", when, uid, !want)
			}
		}
	}
	table.replace([]*record{one, other})
	expect("after the first list")
	table.put(one)
	table.replace([]*record{one, other})
	expect("after the same again")
	table.remove("shop", "cart-z", "")
	table.remove("shop", "cart-y", "pod-8")
	expect("after the deletion of another of the name", "pod-8")
	table.put(other)
	table.put(again)
	expect("made anew", "pod-1", "pod-8")
	table.remove("shop", "cart-x", "pod-2")
	expect("deleted", "pod-1", "pod-2", "pod-8")
	table.replace(nil)
	expect("not in the list", "pod-1", "pod-2", "pod-3", "pod-8")
}

// TestAViewThatWasWrongIsBelievedAgain holds that an object that is there counts, whatever was seen before.
func TestAViewThatWasWrongIsBelievedAgain(t *testing.T) {
	table := newTable(false)
	pod := podRecord(t, "cart-x", "pod-1")
	view := &View{}
	table.put(pod)
	table.replace(nil)
	if err := view.exists(table, "pod", "shop", "cart-x", "pod-1"); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	view.config.Now = func() time.Time { return start }
	table.put(pod)
	if err := view.exists(table, "pod", "shop", "cart-x", "pod-1"); err != nil {
		t.Errorf("%v", err)
	}
}

func podRecord(t *testing.T, name, uid string) *record {
	t.Helper()
	r, err := recordOf(aPod(name, uid, "cart", "node-a"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
