// Package tools pins what the Makefile runs. The data of golang.org/x/vulndb are what govulncheck
// compares us with; no package of it is needed, so its smallest one is imported to keep the
// requirement when go.mod is tidied.
package tools

import _ "golang.org/x/vulndb/cmd/vulnreport/color"
