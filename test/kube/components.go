package main

import "strconv"

func apiServerArgs(s *state, o options, etcd string) []string {
	issuer := o.issuer
	if issuer == "" {
		issuer = s.url()
	}
	args := []string{
		"kube-apiserver",
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // the default one refuses a loopback address
		"--secure-port=" + strconv.Itoa(s.port),
		"--tls-cert-file=" + s.path("apiserver.crt"),
		"--tls-private-key-file=" + s.path("apiserver.key"),
		"--client-ca-file=" + s.path("ca.crt"),
		"--requestheader-client-ca-file=" + s.path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + s.path("front-proxy-client.crt"),
		"--proxy-client-key-file=" + s.path("front-proxy-client.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=" + issuer,
		"--service-account-jwks-uri=" + s.url() + "/openid/v1/jwks",
		"--service-account-key-file=" + s.path("sa.pub"),
		"--service-account-signing-key-file=" + s.path("sa.key"),
		"--api-audiences=" + issuer,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
		"--shutdown-delay-duration=0s",
	}
	if o.emulatedVersion != "" {
		args = append(args, "--emulated-version="+o.emulatedVersion)
	}
	return append(args, o.apiServerFlags...)
}

func controllerArgs(s *state, o options) []string {
	kubeconfig := s.path("kcm.kubeconfig")
	args := []string{
		"kube-controller-manager",
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--controllers=" + o.controllers,
		"--root-ca-file=" + s.path("ca.crt"),
		"--service-account-private-key-file=" + s.path("sa.key"),
		"--cluster-signing-cert-file=" + s.path("csr-ca.crt"),
		"--cluster-signing-key-file=" + s.path("csr-ca.key"),
	}
	if o.emulatedVersion != "" {
		args = append(args, "--emulated-version="+o.emulatedVersion)
	}
	return args
}
