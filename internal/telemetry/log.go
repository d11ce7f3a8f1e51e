// Package telemetry builds what shows the server's state: its logger, its metrics registry and its health checks.
//
// It decides nothing about what is logged, measured or checked, serves nothing over a network (api/web does) and keeps no state of its
// own: everything that it builds is handed to whoever uses it.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// Logger returns a logger that writes to w in the given format, "json" or "text", what is at least as severe as level. Changing the level
// takes effect at once. Attributes pass through Redact.
func Logger(w io.Writer, format string, level *slog.LevelVar) (*slog.Logger, error) {
	options := &slog.HandlerOptions{ReplaceAttr: Redact}
	switch format {
	case "json":
		return slog.New(leveled{Handler: slog.NewJSONHandler(w, options), level: level}), nil
	case "text":
		return slog.New(leveled{Handler: slog.NewTextHandler(w, options), level: level}), nil
	default:
		return nil, fmt.Errorf("log format %q is neither json nor text", format)
	}
}

// Always returns a logger that writes where and as a logger of this package does, but whatever the level is: for records that nobody may lose by asking for
// a quieter log. Any other logger is returned as it is.
func Always(logger *slog.Logger) *slog.Logger {
	if handler, ok := logger.Handler().(leveled); ok {
		handler.always = true
		return slog.New(handler)
	}
	return logger
}

// leveled asks the level before a handler that writes everything.
type leveled struct {
	slog.Handler
	level  slog.Leveler
	always bool
}

// Enabled implements slog.Handler.
func (l leveled) Enabled(_ context.Context, level slog.Level) bool {
	return l.always || level >= l.level.Level()
}

// WithAttrs implements slog.Handler.
func (l leveled) WithAttrs(attributes []slog.Attr) slog.Handler {
	l.Handler = l.Handler.WithAttrs(attributes)
	return l
}

// WithGroup implements slog.Handler.
func (l leveled) WithGroup(name string) slog.Handler {
	l.Handler = l.Handler.WithGroup(name)
	return l
}
