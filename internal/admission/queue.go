package admission

import "time"

// waiter is a caller in the queue.
type waiter struct {
	urgent   time.Time
	sequence uint64
	turn     chan error // gets nil when the work may begin; never blocks
	index    int        // in the queue; negative outside of it
}

// before tells whether w's turn comes first.
func (w *waiter) before(other *waiter) bool {
	if c := w.urgent.Compare(other.urgent); c != 0 {
		return c < 0
	}
	return w.sequence < other.sequence
}

// queue is a heap (container/heap) of waiters, the most urgent first.
type queue []*waiter

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a waiter, for container/heap.
func (q *queue) Push(x any) {
	w, _ := x.(*waiter)
	w.index = len(*q)
	*q = append(*q, w)
}

// Pop takes the last waiter off, for container/heap.
func (q *queue) Pop() any {
	old := *q
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	w.index = -1
	return w
}

// ahead counts the waiters whose turn comes before w's.
func (q queue) ahead(w *waiter) int {
	count := 0
	for _, other := range q {
		if other.before(w) {
			count++
		}
	}
	return count
}

// last returns the index of the least urgent waiter, negative if there is none.
func (q queue) last() int {
	last := -1
	for i := len(q) / 2; i < len(q); i++ { // leaves of the heap
		if last < 0 || q[last].before(q[i]) {
			last = i
		}
	}
	return last
}
