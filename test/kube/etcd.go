package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs a single etcd member in this process, over the data that dir may already hold.
func startEtcd(ctx context.Context, s *state) (*embed.Etcd, error) {
	// Etcd remembers its membership, so that a port of 0, another one each time, is no trouble.
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = s.path("etcd")
	c.LogLevel = "error"
	c.LogOutputs = []string{s.path("etcd.log")}
	c.UnsafeNoFsync = true
	c.TickMs, c.ElectionMs = 10, 100 // a single member need not wait a second for its election
	c.EnableGRPCGateway = false      // it would dial the literal 127.0.0.1:0
	c.QuotaBackendBytes = 1 << 30
	c.ListenClientUrls, c.AdvertiseClientUrls = loopback, loopback
	c.ListenPeerUrls, c.AdvertisePeerUrls = loopback, loopback
	c.InitialCluster = c.InitialClusterFromName(c.Name)

	db, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	select {
	case <-db.Server.ReadyNotify():
		return db, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = errors.New("not ready after 30 s")
	}
	db.Close()
	return nil, fmt.Errorf("starting etcd: %w", err)
}

func etcdURL(db *embed.Etcd) string { return "http://" + db.Clients[0].Addr().String() }
