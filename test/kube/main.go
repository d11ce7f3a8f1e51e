// Command kubetest is a Kubernetes control plane in one executable: etcd within the process, and
// kube-apiserver, kube-controller-manager and kubectl as subcommands of it.
//
//	kubetest up [--dir D] [--ready-file F] [--controllers ...] [-- more kube-apiserver flags]
//	kubetest kube-apiserver ... | kube-controller-manager ... | kubectl ...
//
// It exists so that tests meet the real API server. It has no kubelet and no scheduler: whoever
// creates a pod writes its status too. It is a test bed, never a cluster to keep data in: etcd does
// not fsync, and the keys lie in the state directory in clear.
//
// `up` on a directory that was used before continues where that one stopped, with the same keys,
// certificates, port and objects.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcmapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

const usage = "usage: kubetest up | kube-apiserver | kube-controller-manager | kubectl"

func main() {
	name, args := split(os.Args)
	if name == "up" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := run(ctx, args, os.Stdout, os.Stderr)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, "kubetest up:", err)
			os.Exit(1)
		}
		return
	}
	command := component(name)
	if command == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	// kubectl looks at os.Args itself, to find plugins.
	os.Args = append([]string{name}, args...)
	os.Exit(cli.Run(command))
}

// split tells the subcommand from its arguments. A link named kubectl is as good as the word.
func split(argv []string) (name string, args []string) {
	name, args = filepath.Base(argv[0]), argv[1:]
	switch name {
	case "kube-apiserver", "kube-controller-manager", "kubectl":
		return name, args
	}
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}

func component(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserverapp.NewAPIServerCommand()
	case "kube-controller-manager":
		return kcmapp.NewControllerManagerCommand()
	case "kubectl":
		return kubectlcmd.NewDefaultKubectlCommand()
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return up(ctx, o, stdout, stderr)
}
