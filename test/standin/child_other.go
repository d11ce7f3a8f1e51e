//go:build !linux

package standin

import "syscall"

// dieWithParent does nothing: only Linux has a parent-death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }
