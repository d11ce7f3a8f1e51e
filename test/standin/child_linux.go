package standin

import "syscall"

// dieWithParent makes the kernel end a child when this process is killed without a chance to.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
