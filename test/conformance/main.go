// Command conformance holds Chancery's parser and path validation against public test suites, beside crypto/x509 and OpenSSL on the same
// cases, and writes what came out.
//
// It fails if we answer a case otherwise than its suite says and no reason is written down, or the other way round. Suites that come with Go
// or with a module are always run; those beside the project are when they are there. It needs no network once its modules are there.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	corpora := flags.String("corpora", "../../../shared/corpora", "folder of corpora that may be beside the project")
	write := flags.String("write", "", "file to write the report to, instead of standard output")
	withoutOpenSSL := flags.Bool("without-openssl", false, "do not run OpenSSL, which takes a minute")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	all, err := gather(*corpora)
	if err != nil {
		return err
	}
	version := opensslVersion()
	if *withoutOpenSSL {
		version = ""
	}
	var results []result
	var unexplained []string
	for _, c := range all {
		r := c.run(version != "")
		results = append(results, r)
		unexplained = append(unexplained, r.unexplained()...)
	}
	report := render(results, version)
	if *write == "" {
		fmt.Print(report)
	} else if err := os.WriteFile(*write, []byte(report), 0o644); err != nil {
		return err
	}
	for _, line := range unexplained {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(unexplained) > 0 {
		return fmt.Errorf("%d answers are not explained", len(unexplained))
	}
	return nil
}

// gather returns every corpus.
func gather(dir string) ([]corpus, error) {
	all := []corpus{pkits(), limbo(dir + "/limbo")}
	better, err := betterTLS()
	if err != nil {
		return nil, fmt.Errorf("bettertls: %w", err)
	}
	all = append(all, better...)
	signed, err := signatures()
	if err != nil {
		return nil, fmt.Errorf("wycheproof: %w", err)
	}
	linted, err := zlintData()
	if err != nil {
		return nil, fmt.Errorf("zlint: %w", err)
	}
	return append(append(all, signed, linted), files(dir)...), nil
}
