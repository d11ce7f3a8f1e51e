package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	day     = 24 * time.Hour
	maxDays = int64(1<<63-1) / int64(day)
)

// parseDuration reads a Go duration that may begin with whole days: 90d, 1d12h, 1h30m, 500ms.
func parseDuration(text string) (time.Duration, error) {
	errFormat := errors.New("needs a duration with a unit, such as 10s, 5m, 24h or 90d")
	count, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		d, err := time.ParseDuration(text)
		if err != nil || text == "0" {
			return 0, errFormat
		}
		return d, nil
	}
	days, err := strconv.ParseUint(count, 10, 63)
	if err != nil || int64(days) > maxDays {
		return 0, errFormat
	}
	total := time.Duration(days) * day
	if rest == "" {
		return total, nil
	}
	part, err := time.ParseDuration(rest)
	if err != nil || part < 0 || total+part < total {
		return 0, errFormat
	}
	return total + part, nil
}

// formatDuration writes what parseDuration reads, shorter than Go does: 24h, 90d, 1h30m.
func formatDuration(d time.Duration) string {
	if d > day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
