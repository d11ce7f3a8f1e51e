// Package expression compiles and evaluates expressions of the Common Expression Language (CEL) that stand in the configuration.
//
// The language is that of Kubernetes' own policies: its functions for IP addresses, networks, URLs, regular expressions, lists, sets, strings and
// formats, its limits and its prices. Left out is what lets a short text make a huge value (format, quote) or means nothing here (quantities,
// versions, authorizer). Variables have declared types, so a mistyped field is refused when the expression is compiled and not when it is needed.
// An expression can neither loop without end nor see the time, files or a network: what it says follows from its variables alone.
//
// The package never logs, never caches what it has read and never decides what a result means.
package expression
