package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"go.yaml.in/yaml/v3"
)

// isScalar tells whether t is one of the types that parseScalar reads.
func isScalar(t reflect.Type) bool {
	switch reflect.Zero(t).Interface().(type) {
	case bool, int, float64, string, time.Duration, slog.Level, spiffeid.TrustDomain, netip.Addr, netip.Prefix:
		return true
	default:
		return false
	}
}

// parseScalar reads a value of type t. Its errors say what the setting needs.
func parseScalar(node *yaml.Node, t reflect.Type) (reflect.Value, error) {
	var v any
	var err error
	switch reflect.Zero(t).Interface().(type) {
	case bool:
		v, err = parseBool(node)
	case int:
		v, err = parseInt(node)
	case float64:
		v, err = parseFloat(node)
	default:
		var text string
		if text, err = parseString(node); err == nil {
			v, err = parseText(text, t)
		} else if t == reflect.TypeFor[time.Duration]() && node.Kind == yaml.ScalarNode {
			_, err = parseDuration("")
		}
	}
	if err != nil {
		return reflect.Value{}, err
	}
	return reflect.ValueOf(v), nil
}

func parseText(text string, t reflect.Type) (any, error) {
	switch reflect.Zero(t).Interface().(type) {
	case time.Duration:
		return parseDuration(text)
	case slog.Level:
		return parseLevel(text)
	case spiffeid.TrustDomain:
		return parseTrustDomain(text)
	case netip.Addr:
		return parseAddr(text)
	case netip.Prefix:
		return parsePrefix(text)
	default:
		return text, nil
	}
}

func parseBool(node *yaml.Node) (bool, error) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!bool" {
		return strconv.ParseBool(strings.ToLower(node.Value))
	}
	return false, errors.New("needs true or false")
}

// parseInt reads decimal numbers only: in YAML 010 is eight, or ten, depending on who reads it.
func parseInt(node *yaml.Node) (int, error) {
	errFormat := errors.New("needs a whole number")
	if node.Kind != yaml.ScalarNode || node.Tag != "!!int" {
		return 0, errFormat
	}
	n, err := strconv.Atoi(node.Value)
	if err != nil || strconv.Itoa(n) != node.Value {
		return 0, fmt.Errorf("%w, in decimal", errFormat)
	}
	return n, nil
}

func parseFloat(node *yaml.Node) (float64, error) {
	errFormat := errors.New("needs a number")
	if node.Kind != yaml.ScalarNode || node.Tag != "!!int" && node.Tag != "!!float" {
		return 0, errFormat
	}
	f, err := strconv.ParseFloat(node.Value, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, errFormat
	}
	return f, nil
}

func parseString(node *yaml.Node) (string, error) {
	switch {
	case node.Kind != yaml.ScalarNode:
		return "", errors.New("needs a single value")
	case node.Tag != "!!str":
		return "", fmt.Errorf("needs a string; write %q", node.Value)
	case !utf8.ValidString(node.Value) || strings.ContainsFunc(node.Value, unicode.IsControl):
		return "", errors.New("must not contain control characters")
	}
	return node.Value, nil
}

// parseLines reads a string that may have several lines.
func parseLines(node *yaml.Node, _ reflect.Type) (reflect.Value, error) {
	plain := *node
	plain.Value = strings.NewReplacer("\n", " ", "\t", " ").Replace(node.Value)
	if _, err := parseString(&plain); err != nil {
		return reflect.Value{}, err
	}
	return reflect.ValueOf(node.Value), nil
}

// parseLevel knows the four names alone, not the offsets ("INFO+2") that slog reads.
func parseLevel(text string) (slog.Level, error) {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if text == strings.ToLower(l.String()) {
			return l, nil
		}
	}
	return 0, fmt.Errorf("%q is not one of debug, info, warn, error", text)
}

func parseTrustDomain(text string) (spiffeid.TrustDomain, error) {
	if strings.ContainsAny(text, ":/") {
		return spiffeid.TrustDomain{}, errors.New(`needs the name alone, such as cluster.local, without "spiffe://" and path`)
	}
	if len(text) > 255 {
		return spiffeid.TrustDomain{}, errors.New("is longer than 255 characters")
	}
	return spiffeid.TrustDomainFromString(text)
}

func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", text)
	}
	return addr.Unmap(), nil
}

// parsePrefix reads a network, or an address as the network that holds it alone.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := parseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q: write the IPv4 network", text)
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("%q has bits after its length; the network is %s", text, prefix.Masked())
	}
	return prefix, nil
}
