package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	apiServerWait  = 90 * time.Second
	controllerWait = 60 * time.Second
	pollEvery      = 50 * time.Millisecond
)

// up runs the control plane until ctx ends, which is no error, or one of its parts does, which is.
func up(ctx context.Context, o options, stdout, stderr io.Writer) error {
	began := time.Now()
	s, err := openState(o.dir)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.prepare(o.port); err != nil {
		return err
	}
	// A ready file left by an earlier run would tell a lie.
	if o.readyFile != "" {
		if err := os.Remove(o.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the old ready file: %w", err)
		}
	}

	db, err := startEtcd(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()
	etcdAt := time.Since(began)

	client, err := s.adminClient()
	if err != nil {
		return err
	}
	apiServer, err := startChild(s.path("kube-apiserver.log"), apiServerArgs(s, o, etcdURL(db)))
	if err != nil {
		return err
	}
	defer apiServer.stop()
	if err := apiServer.waitOK(ctx, client, s.url()+"/readyz", apiServerWait); err != nil {
		return err
	}
	readyAt := time.Since(began)

	var controllersDone <-chan struct{} // nil, and so never ready, without controllers
	var controllers *child
	if o.kcm {
		controllers, err = startChild(s.path("kube-controller-manager.log"), controllerArgs(s, o))
		if err != nil {
			return err
		}
		defer controllers.stop()
		controllersDone = controllers.done
		// The service account "default" is the work of a controller: it proves that they run.
		probe := s.url() + "/api/v1/namespaces/default/serviceaccounts/default"
		if err := controllers.waitOK(ctx, client, probe, controllerWait); err != nil {
			return err
		}
	}

	fmt.Fprintf(stderr, "etcd %v, kube-apiserver %v, all %v\n",
		etcdAt.Round(time.Millisecond), readyAt.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if err := announce(o.readyFile, s.path("kubeconfig"), stdout); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-apiServer.done:
		return apiServer.ended()
	case <-controllersDone:
		return controllers.ended()
	case err := <-db.Err():
		return fmt.Errorf("etcd ended: %w", err)
	}
}

// announce prints the kubeconfig's path, and writes it to readyFile in one step so that a reader
// never sees half of it.
func announce(readyFile, kubeconfig string, stdout io.Writer) error {
	if _, err := fmt.Fprintln(stdout, kubeconfig); err != nil {
		return fmt.Errorf("printing the kubeconfig's path: %w", err)
	}
	if readyFile == "" {
		return nil
	}
	return writeFile(filepath.Clean(readyFile), []byte(kubeconfig+"\n"))
}
