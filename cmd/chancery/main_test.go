package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/api/client"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/ledger"
)

// TestExitCodes holds every kind of error against the exit code that the help promises.
func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
	}{
		"usage":                             {usageError{errors.New("x")}, exitUsage},
		"usage, wrapped":                    {fmt.Errorf("doing: %w", usageError{errors.New("x")}), exitUsage},
		"usage that is unavailable as well": {usageError{ledger.ErrUnavailable}, exitUsage},
		"refused":                           {refusedError{errors.New("x")}, exitRefused},
		"refused that is a deadline":        {refusedError{context.DeadlineExceeded}, exitRefused},
		"ledger unavailable":                {fmt.Errorf("reading: %w", ledger.ErrUnavailable), exitUnavailable},
		"a deadline":                        {fmt.Errorf("asking: %w", context.DeadlineExceeded), exitUnavailable},
		"a cancellation":                    {context.Canceled, exitUnavailable},
		"a server that is not believed":     {explain("ca:8443", fmt.Errorf("%w: x", client.ErrServer)), exitRefused},
		"an answer that does not hold":      {explain("ca:8443", fmt.Errorf("%w: x", client.ErrAnswer)), exitRefused},
		"an error that nobody classified":   {errors.New("x"), exitRefused},
		"a command that is not known":       {errors.New(`unknown command "x" for "chancery"`), exitUsage},
		"a flag that is missing":            {errors.New(`required flag(s) "dir" not set`), exitUsage},
		"too many arguments":                {errors.New("accepts 1 arg(s), received 2"), exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitCode(test.err); got != test.code {
				t.Errorf("exit code %d, want %d", got, test.code)
			}
		})
	}
	for number := range math.MaxUint8 + 1 {
		kind := errkind.Kind(number)
		want := exitRefused
		if kind == errkind.Exhausted || kind == errkind.Unavailable {
			want = exitUnavailable
		}
		if got := exitCode(fmt.Errorf("doing: %w", errkind.New(kind, "x"))); got != want {
			t.Errorf("%s: exit code %d, want %d", kind, got, want)
		}
	}
}

// TestExitCodesOfServers: what a server answers, in every code that gRPC has.
func TestExitCodesOfServers(t *testing.T) {
	again := map[codes.Code]bool{
		codes.Canceled: true, codes.DeadlineExceeded: true, codes.ResourceExhausted: true, codes.Aborted: true, codes.Internal: true, codes.Unavailable: true,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want := exitRefused
		if again[code] {
			want = exitUnavailable
		}
		err := explain("ca:8443", status.Error(code, "the sentence"))
		if got := exitCode(err); got != want {
			t.Errorf("%s: exit code %d, want %d", code, got, want)
		}
		if text := "ca:8443: the sentence (" + code.String() + ")"; code != codes.Unknown && err.Error() != text {
			t.Errorf("%s is told as %q, want %q", code, err, text)
		}
	}
}
