package admission

import (
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Memory remembers until when callers have what they came for, so that those who have none, or for the shortest time, come first. It is fed by the
// server: nothing that a caller says changes it. Safe for concurrent use.
type Memory struct{ until *lru.Cache[string, time.Time] }

// NewMemory returns a Memory of so many callers.
func NewMemory(size int) (*Memory, error) {
	until, err := lru.New[string, time.Time](size)
	if err != nil {
		return nil, fmt.Errorf("making the memory of callers: %w", err)
	}
	return &Memory{until: until}, nil
}

// Until returns until when a caller has what it came for; the zero time if that is not known.
func (m *Memory) Until(key string) time.Time {
	until, _ := m.until.Get(key)
	return until
}

// Remember notes until when a caller has what it came for.
func (m *Memory) Remember(key string, until time.Time) { m.until.Add(key, until) }
