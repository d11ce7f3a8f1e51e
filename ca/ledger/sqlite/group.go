package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// The states as the file holds them.
const (
	reserved int64 = iota
	issued
	failed
)

// The reasons that the ledger itself gives.
const (
	reasonLeft    = "the request ended before its reservation was durable"
	reasonStopped = "the server stopped before it was settled; a certificate with this serial may have been signed but never left the process"
)

// roll is what the writer remembers of the file: the reservations that are open, and how its rows are numbered. It says what is
// durable, and what the group under way has added.
type roll struct {
	open       map[ledger.Serial]*reservation
	identities map[string]int64
	lastIntent int64
}

// maxIdentities bounds the remembered identities. Beyond it they are forgotten, and looked up again.
const maxIdentities = 1 << 16

// reservation is one open reservation.
type reservation struct {
	*line
	intents  *intents
	durable  bool // false while the group that makes it is under way
	settling bool // true while the group that settles it is under way
}

// intents is one row of the table of that name.
type intents struct {
	id   int64
	open int // its reservations that are not settled
}

// group is one transaction under way.
type group struct {
	*writer
	intents    *intents
	reserved   []*reservation
	settled    []*reservation
	identified []string
	known      map[ledger.Serial]bool // serials of this group's reservations that the file already has
}

// run does what the requests ask. Its error ends the transaction.
func (g *group) run(requests []*request, answers []error) (broken error) {
	for _, serial := range g.deserted {
		// Its caller may have settled it after all: that answer is nobody's.
		if _, broken := g.settle(&ledger.Outcome{Serial: serial, Reason: reasonLeft}, failed); broken != nil {
			return broken
		}
	}
	if broken := g.findKnown(requests); broken != nil {
		return broken
	}
	for i, r := range requests {
		if answers[i], broken = r.write(g); broken != nil {
			return broken
		}
	}
	return g.writeIntents()
}

// findKnown looks the serials of all reservations up at once.
func (g *group) findKnown(requests []*request) error {
	list := strings.Builder{}
	list.Grow(44 * len(requests))
	for _, r := range requests {
		if r.line == nil {
			continue
		}
		if list.Len() > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `"%x"`, string(r.line.serial))
	}
	if list.Len() == 0 {
		return nil
	}
	return g.statements.known.rows(1, func(row []driver.Value) error {
		if g.known == nil {
			g.known = map[ledger.Serial]bool{}
		}
		g.known[ledger.Serial(blob(row[0]))] = true
		return nil
	}, "["+list.String()+"]")
}

// writeIntents writes the row of what the group reserves.
func (g *group) writeIntents() error {
	if len(g.reserved) == 0 {
		return nil
	}
	payload := strings.Builder{}
	payload.Grow(len(g.reserved) * len(g.reserved[0].text) * 9 / 8)
	for _, r := range g.reserved {
		payload.WriteString(r.text)
	}
	g.intents.id = g.lastIntent + 1
	_, err := g.statements.addIntents.exec(g.intents.id, payload.String())
	return err
}

// keep takes what the transaction did into the writer's memory.
func (g *group) keep() {
	for _, r := range g.reserved {
		r.durable = true
	}
	for _, r := range g.settled {
		delete(g.open, r.serial)
	}
	if g.intents != nil {
		g.lastIntent = g.intents.id
	}
	g.writer.deserted = g.writer.deserted[:0]
	if len(g.identities) > maxIdentities {
		clear(g.identities)
	}
}

// undo takes out of the writer's memory what the transaction did not do.
func (g *group) undo() {
	for _, r := range g.reserved {
		delete(g.open, r.serial)
	}
	for _, r := range g.settled {
		r.settling = false
		r.intents.open++
	}
	for _, name := range g.identified {
		delete(g.identities, name)
	}
}
