SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION = $(shell git describe --always --dirty 2>/dev/null || echo unknown)

# Each family of tools has a module of its own, so that one's dependencies never move another's.
GOLANGCI_LINT := go tool -modfile=tools/lint/go.mod golangci-lint
BUF := go tool -modfile=tools/gen/go.mod buf

.PHONY: help build test e2e demo bench pacing stampede conformance lint generate generate-check fmt fuzz-smoke

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the commands into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/ ./cmd/...

test: ## run the unit tests with the race detector
	go test -race ./...

e2e: ## run the tests that need a Kubernetes control plane (the first time builds one: 10 min)
	test/kube/build.sh
	go test -tags e2e -count=1 -timeout 30m ./test/... ./ca/chain ./signer/cfssl ./signer/local

demo: build ## show everything once, from an empty directory to a renewed certificate
	test/demo/demo.sh

bench: ## measure issuance
	go run ./test/bench

pacing: ## simulate how the renewals of 100,000 agents come back
	go run ./test/pacing

stampede: ## have 2,000 new clients come at once, with limits off and on; then 30 s of bad tokens
	go run ./test/stampede -off
	go run ./test/stampede
	go run ./test/stampede -bad 30s
	go run ./test/stampede -agents 5000

conformance: ## judge public test suites and write docs/conformance.md
	cd test/conformance && go run . -write ../../docs/conformance.md

lint: generate-check ## check style, layers, generated code, module files and known vulnerabilities
	$(GOLANGCI_LINT) run
	$(GOLANGCI_LINT) fmt --diff
	go vet -tags e2e ./...
	go test ./internal/layers
	go mod tidy -diff
	tools/govulncheck.sh ./...

generate: ## generate the code of api/ from its .proto files
	$(BUF) generate api --template api/buf.gen.yaml

generate-check: ## check the .proto files, and that the generated code is up to date
	$(BUF) lint api
	$(BUF) format api --diff --exit-code
	tools/generate-check.sh

fmt: ## format all Go and .proto files
	$(GOLANGCI_LINT) fmt
	$(BUF) format api --write

fuzz-smoke: ## run each fuzz target for a few seconds (FUZZTIME=5s)
	tools/fuzz-smoke.sh
