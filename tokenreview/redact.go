package tokenreview

import "strings"

const (
	// maxForeignText bounds what is kept of a text that another system wrote.
	maxForeignText = 1 << 10
	// leakWindow is how many characters in a row of a token count as a leak of it.
	leakWindow = 16
)

// redact makes a text that another system wrote about a token fit for the log: one line, bounded, without the token or a piece of it.
// API servers and webhooks quote what they refuse.
func redact(text, token string) string {
	if len(text) > maxForeignText {
		text = text[:maxForeignText]
	}
	var out strings.Builder
	for len(text) > 0 {
		run := 0
		for run < len(text) && isBase64URL(text[run]) {
			run++
		}
		if run == 0 {
			c := text[0]
			if c < ' ' || c > '~' {
				c = ' '
			}
			out.WriteByte(c)
			text = text[1:]
			continue
		}
		if leaks(text[:run], token) {
			out.WriteString("[redacted]")
		} else {
			out.WriteString(text[:run])
		}
		text = text[run:]
	}
	return out.String()
}

// leaks tells whether run holds leakWindow characters in a row of token.
func leaks(run, token string) bool {
	for i := 0; i+leakWindow <= len(run); i++ {
		if strings.Contains(token, run[i:i+leakWindow]) {
			return true
		}
	}
	return false
}
