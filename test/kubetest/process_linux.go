package kubetest

import "syscall"

// dieWithParent makes the kernel end the control plane when the test binary is killed, as by a
// timeout, without a chance to clean up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
