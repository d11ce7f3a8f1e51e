// Package admission decides which work begins now, which waits and which is told to come back, so that a server under more load than it can carry
// stays fast for those whom it serves.
//
// It knows callers by opaque keys and work by how long it took. It never looks at requests, credentials or sockets.
package admission
