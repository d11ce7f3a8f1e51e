package sqlite

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// BenchmarkReserveCommit issues from 64 callers at once. It reports the processor time of the whole process (system calls and
// garbage collection included) and the flushes for each certificate.
func BenchmarkReserveCommit(b *testing.B) {
	var flushes, writes, slowest atomic.Int64
	l, err := Open(b.Context(), Config{Path: filepath.Join(b.TempDir(), "ledger.db"), Flushed: func(f Flush) {
		flushes.Add(1)
		writes.Add(int64(f.Writes))
		slowest.Store(max(slowest.Load(), f.Took.Milliseconds()))
		if f.Err != nil {
			b.Error(f.Err)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	issuer := []byte("twenty octets, as is") // one, or few, sign all
	certificate := make([]byte, 700)
	_, _ = rand.Read(certificate)
	var n atomic.Int64
	b.SetParallelism(32) // of 2 processors
	before := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			in := benchIntent(int(n.Add(1)))
			if err := l.Reserve(b.Context(), in); err != nil {
				b.Error(err)
				return
			}
			err := l.Commit(b.Context(), ledger.Outcome{
				Serial: in.Serial, Certificate: certificate, IssuerKeyID: issuer,
				NotBefore: in.Created, NotAfter: in.Created.Add(24 * time.Hour),
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/cert")
	b.ReportMetric(float64(flushes.Load())/float64(b.N), "flushes/cert")
	b.ReportMetric(float64(writes.Load())/float64(flushes.Load()), "writes/flush")
	b.ReportMetric(float64(slowest.Load()), "slowest-ms")
}

func benchIntent(n int) ledger.Intent {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw)
	raw[0] |= 0x40
	serial, err := ledger.SerialFromInt(new(big.Int).SetBytes(raw))
	if err != nil {
		return ledger.Intent{} // which no ledger reserves
	}
	account := fmt.Sprintf("service-%d", n%1000)
	identity := "spiffe://cluster.local/ns/production/sa/" + account
	key := sha256.Sum256(raw)
	return ledger.Intent{
		Serial: serial, Created: time.Now(), Identity: identity, Profile: "workload", Rule: "self",
		Names: []string{"URI:" + identity},
		Origin: ledger.Origin{
			Method: "kubernetes", CredentialID: "a3c9b2f0-6f4e-4d0b-9f5e-2f6f6f7b1d10", Door: "grpc", Remote: "10.1.2.3:43210", Cluster: "local",
			Namespace: "production", Account: account, AccountUID: "0f2b6c1e-7a1d-4f5e-8c55-1d2e3f4a5b6c",
			Pod: account + "-7d9f8b6c5d-x2x4z", PodUID: "5d1c0b7a-2e3f-4a5b-8c9d-0e1f2a3b4c5d", Node: "node-17",
			NodeUID: "9a8b7c6d-5e4f-4a3b-9c1d-2e3f4a5b6c7d",
		},
		KeyID: key[:],
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
