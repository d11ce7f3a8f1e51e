package inspect

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Tone is how a text is coloured.
type Tone string

// The tones, as the parameters of ECMA-48 §8.3.117.
const (
	Plain  Tone = ""
	Strong Tone = "1"
	Faint  Tone = "2"
	Bad    Tone = "31"
	Good   Tone = "32"
	Warn   Tone = "33"
)

// Page writes text for a person. Every text passes Clean, so that nothing of an input reaches a terminal but what can be printed; the
// only control sequences are the page's own colours.
type Page struct {
	w      io.Writer
	colour bool
	indent string
	err    error
}

// NewPage returns a Page on w.
func NewPage(w io.Writer, colour bool) *Page { return &Page{w: w, colour: colour} }

// Err returns the first error of writing.
func (p *Page) Err() error { return p.err }

// labelWidth is the width of the column of labels.
const labelWidth = 11

// Line writes a line of its own.
func (p *Page) Line(tone Tone, format string, args ...any) {
	p.write(p.indent + p.paint(tone, fmt.Sprintf(format, args...)) + "\n")
}

// Row writes a label and values, each value on a line. Without values it writes nothing.
func (p *Page) Row(label string, tone Tone, values ...string) {
	for _, value := range values {
		padding := strings.Repeat(" ", max(1, labelWidth-utf8.RuneCountInString(label)))
		p.write(p.indent + "  " + p.paint(Faint, label) + padding + p.paint(tone, value) + "\n")
		label = ""
	}
}

// Blank writes an empty line.
func (p *Page) Blank() { p.write("\n") }

// Indented returns the page for what belongs to the line above.
func (p *Page) Indented(write func()) {
	before := p.indent
	p.indent += "  "
	write()
	p.indent = before
}

func (p *Page) paint(tone Tone, text string) string {
	if text = Clean(text); tone == Plain || !p.colour || text == "" {
		return text
	}
	return "\x1b[" + string(tone) + "m" + text + "\x1b[0m"
}

func (p *Page) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}
