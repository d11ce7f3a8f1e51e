package cfssltest

import (
	"io"
	"log"
)

// quiet takes what net/http says of broken handshakes.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
