package main

import (
	"flag"
	"io"
)

// These are the controllers that have something to do for a CA: tokens, service accounts, the
// cluster's CSR signers and cleaners, and what deletes the objects of a deleted namespace.
const defaultControllers = "serviceaccount-controller,serviceaccount-token-controller,namespace-controller," +
	"garbage-collector-controller,root-ca-certificate-publisher-controller," +
	"certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller," +
	"certificatesigningrequest-cleaner-controller,podcertificaterequest-cleaner-controller," +
	"kube-apiserver-serving-clustertrustbundle-publisher-controller,clusterrole-aggregation-controller," +
	"validatingadmissionpolicy-status-controller"

type options struct {
	dir             string
	readyFile       string
	port            int
	kcm             bool
	controllers     string
	issuer          string
	emulatedVersion string
	apiServerFlags  []string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("up", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.dir, "dir", "", "state directory, reused if it exists (default: a new temporary one, removed at the end)")
	fs.StringVar(&o.readyFile, "ready-file", "", "written with the kubeconfig's path once everything is ready")
	fs.IntVar(&o.port, "port", 0, "kube-apiserver's port on 127.0.0.1 (0: the directory's last one, or a free one)")
	fs.BoolVar(&o.kcm, "kcm", true, "run kube-controller-manager")
	fs.StringVar(&o.controllers, "controllers", defaultControllers, "controllers for kube-controller-manager")
	fs.StringVar(&o.issuer, "issuer", "", "service account token issuer (default https://127.0.0.1:PORT)")
	fs.StringVar(&o.emulatedVersion, "emulated-version", "", "Kubernetes version to behave like, for example 1.36")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	o.apiServerFlags = fs.Args()
	return o, nil
}
