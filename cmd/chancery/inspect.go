package main

import "github.com/spf13/cobra"

func inspectCommand() *cobra.Command { return &cobra.Command{Use: "inspect"} }
func verifyCommand() *cobra.Command  { return &cobra.Command{Use: "verify"} }
