// Package telemetry builds what shows the server's state: its logger, its metrics registry and its health checks.
//
// It decides nothing about what is logged, measured or checked, serves nothing over a network (api/web does) and keeps no state of its
// own: everything that it builds is handed to whoever uses it.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// Logger returns a logger that writes to w in the given format, "json" or "text", what is at least as severe as level. Changing the level
// takes effect at once. Attributes pass through Redact.
func Logger(w io.Writer, format string, level *slog.LevelVar) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: Redact}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("log format %q is neither json nor text", format)
	}
}
