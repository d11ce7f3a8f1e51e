package admission

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Buckets are token buckets by key. The keys that were used least lately are forgotten, and a forgotten key has a full bucket again: so keys have to
// be something that costs its holder, such as an identity that was proven. Safe for concurrent use.
type Buckets struct {
	rate  float64 // tokens a second
	burst float64
	now   func() time.Time

	mu   sync.Mutex
	keys *simplelru.LRU[string, bucket]
}

type bucket struct {
	tokens float64
	at     time.Time
}

// NewBuckets returns Buckets that are full of burst tokens, gain rate tokens a second and remember size keys.
func NewBuckets(rate float64, burst, size int, now func() time.Time) (*Buckets, error) {
	if rate <= 0 || burst < 1 || now == nil {
		return nil, errors.New("admission: buckets need a rate, a burst of at least one and a clock")
	}
	keys, err := simplelru.NewLRU[string, bucket](size, nil)
	if err != nil {
		return nil, fmt.Errorf("making buckets: %w", err)
	}
	return &Buckets{rate: rate, burst: float64(burst), now: now, keys: keys}, nil
}

// longestBucketWait bounds what a caller is told to wait, however low the rate.
const longestBucketWait = time.Hour

// Take takes a token of the key's bucket, or returns how long it takes until there is one, at most an hour. To ask in vain costs nothing.
func (b *Buckets) Take(key string) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	has, known := b.keys.Get(key)
	if !known {
		has = bucket{tokens: b.burst, at: now}
	}
	if gone := now.Sub(has.at); gone > 0 { // a clock that was set back gives nothing
		has.tokens = min(b.burst, has.tokens+gone.Seconds()*b.rate)
	}
	has.at = now
	if has.tokens >= 1 {
		has.tokens--
		ok = true
	} else {
		// rounded up, and a little more: who waits for so long must not find a billionth of a token missing
		wait = time.Duration(min((1-has.tokens)/b.rate*float64(time.Second)+100, float64(longestBucketWait)))
	}
	b.keys.Add(key, has)
	return wait, ok
}
