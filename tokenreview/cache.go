package tokenreview

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/chancery-ca/chancery/ca/identity"
)

// cacheKey stands for a token. A dump of the cache reveals no token and confirms no guess, since the HMAC's key is the process's own.
type cacheKey [sha256.Size]byte

// verdict is what became of a token: a principal or the error that refuses it.
type verdict struct {
	principal *identity.Principal
	err       error
	from      time.Time // when the review began
	until     time.Time // the last moment, exclusive, at which it may be used
}

// cache holds verdicts of the cluster, never failures to get one. Good and bad tokens do not share room: whoever sends many unique
// bad tokens evicts only bad ones.
type cache struct {
	secret [32]byte
	good   *lru.Cache[cacheKey, verdict]
	bad    *lru.Cache[cacheKey, verdict]
}

func newCache(goodSize, badSize int) (*cache, error) {
	good, err := lru.New[cacheKey, verdict](goodSize)
	if err != nil {
		return nil, fmt.Errorf("making the cache of good tokens: %w", err)
	}
	bad, err := lru.New[cacheKey, verdict](badSize)
	if err != nil {
		return nil, fmt.Errorf("making the cache of bad tokens: %w", err)
	}
	c := &cache{good: good, bad: bad}
	if _, err := rand.Read(c.secret[:]); err != nil {
		return nil, fmt.Errorf("making the key of the cache: %w", err)
	}
	return c, nil
}

// key returns HMAC-SHA-256 of the audiences, each after its length, and the token.
func (c *cache) key(audiences []string, token string) (key cacheKey) {
	mac := hmac.New(sha256.New, c.secret[:])
	write := func(text string) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		mac.Write([]byte(text))
	}
	for _, audience := range audiences {
		write(audience)
	}
	write(token)
	mac.Sum(key[:0])
	return key
}

// get returns the verdict that is still good at now. A clock that was set back ends a verdict too.
func (c *cache) get(key cacheKey, now time.Time) (verdict, bool) {
	for _, store := range []*lru.Cache[cacheKey, verdict]{c.good, c.bad} {
		if v, ok := store.Get(key); ok {
			if now.Before(v.until) && !now.Before(v.from) {
				return v, true
			}
			store.Remove(key)
		}
	}
	return verdict{}, false
}

func (c *cache) put(key cacheKey, v verdict) {
	if v.err != nil {
		c.bad.Add(key, v)
		return
	}
	c.good.Add(key, v)
}
