package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/test/standin"
)

// bed is a server with everything that it needs, in a folder that goes away.
type bed struct {
	dir       string
	api       *standin.API
	authority *standin.Authority
	server    *standin.Server
}

func newBed(ctx context.Context, o options) (b *bed, err error) {
	dir, err := os.MkdirTemp("", "chancery-bench-")
	if err != nil {
		return nil, err
	}
	b = &bed{dir: dir, api: standin.NewAPI()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	binary := o.binary
	if binary == "" {
		if binary, err = standin.Build(ctx, dir); err != nil {
			return b, err
		}
	}
	if b.authority, err = standin.Init(ctx, binary, filepath.Join(dir, "ca"), standin.Unlimited, b.api); err != nil {
		return b, err
	}
	if b.server, err = b.authority.Start(); err != nil {
		return b, err
	}
	return b, b.server.Ready(ctx)
}

// serverCPU returns the CPU time that the server has used, user and system.
func (b *bed) serverCPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.server.Pid()))
	if err != nil {
		return 0, err
	}
	// fields 14 and 15, counted after the command's closing parenthesis, in ticks of 10 ms (proc(5))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[stime], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * tick, nil
}

func (b *bed) close() (err error) {
	if b.server != nil {
		err = b.server.Stop()
	}
	b.api.Close()
	return errors.Join(err, os.RemoveAll(b.dir))
}

func (b *bed) tls() *tls.Config { return b.authority.TLS() }

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func randomSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 158))
}
