# One door to the house. `make help` lists what is behind it.
SHELL := /bin/bash
GO ?= go
BUF_VERSION := 1.75.0
INSPECTOR_VERSION := 2.12.0
# The last one that runs on Node 20.
CONFORMANCE_VERSION := 0.1.13
# What the TypeScript client of docs/clients.md is built with.
STUBS := @grpc/grpc-js@1.14.7 ts-proto@2.18.0 typescript@7.0.2 @types/node@26.6.7
GOLANGCI_VERSION := v2.15.0
TOOLS := $(CURDIR)/.tools
BUF := $(TOOLS)/node_modules/.bin/buf
INSPECTOR := $(TOOLS)/node_modules/.bin/mcp-inspector
CONFORMANCE := $(TOOLS)/node_modules/.bin/conformance
GOLANGCI := $(TOOLS)/bin/golangci-lint-$(GOLANGCI_VERSION)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.revision=$(COMMIT)
COMMANDS := $(notdir $(wildcard cmd/*))
# How long `make fuzz` spends on each target.
FUZZTIME ?= 20s

# $(call apt,command that must exist,packages) installs Debian packages when the command is missing.
define apt
	@if ! command -v $(1) >/dev/null 2>&1; then \
	  echo "==> Debian packages: $(2)"; \
	  if ! command -v apt-get >/dev/null; then echo "$(1) is missing and there is no apt-get; install $(2) by hand" >&2; exit 1; fi; \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$SUDO apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
	fi
endef

.PHONY: help extension setup setup-go setup-buf setup-inspector setup-conformance setup-stubs setup-browsers setup-lint demo build gen lint fmt test fuzz bench clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: setup-go setup-buf setup-inspector setup-conformance setup-stubs setup-browsers ## Install what building, generating and testing need (Debian)

setup-go:
	@command -v $(GO) >/dev/null || { echo "Go 1.26 or newer is needed: https://go.dev/doc/install" >&2; exit 1; }
	@echo "==> Go modules"
	@$(GO) mod download

setup-buf: $(BUF)
$(BUF):
	$(call apt,npm,nodejs npm)
	@echo "==> buf $(BUF_VERSION) (from npm, into .tools)"
	@mkdir -p $(TOOLS) && npm install --silent --no-fund --no-audit --prefix $(TOOLS) @bufbuild/buf@$(BUF_VERSION)

setup-inspector: $(INSPECTOR)
$(INSPECTOR): $(BUF)
	@echo "==> MCP inspector $(INSPECTOR_VERSION) (from npm, into .tools)"
	@npm install --silent --no-fund --no-audit --prefix $(TOOLS) @modelcontextprotocol/inspector@$(INSPECTOR_VERSION)

setup-conformance: $(CONFORMANCE)
$(CONFORMANCE): $(INSPECTOR)
	@echo "==> MCP conformance suite $(CONFORMANCE_VERSION) (from npm, into .tools)"
	@npm install --silent --no-fund --no-audit --prefix $(TOOLS) @modelcontextprotocol/conformance@$(CONFORMANCE_VERSION)

setup-stubs: $(TOOLS)/node_modules/ts-proto
	$(call apt,grpc_python_plugin,protobuf-compiler protobuf-compiler-grpc python3-grpcio python3-protobuf)
$(TOOLS)/node_modules/ts-proto: $(CONFORMANCE)
	@echo "==> what gRPC clients in TypeScript are built with (from npm, into .tools)"
	@npm install --silent --no-fund --no-audit --prefix $(TOOLS) $(STUBS)

setup-browsers:
	$(call apt,chromium,chromium fonts-liberation)
	$(call apt,chromedriver,chromium-driver)
	$(call apt,firefox-esr,firefox-esr)
	$(call apt,WebKitWebDriver,webkit2gtk-driver)
	$(call apt,Xvfb,xvfb)
	@echo "==> $$(chromium --version 2>/dev/null), $$(firefox-esr --version 2>/dev/null)"

setup-lint: $(GOLANGCI)
$(GOLANGCI):
	@echo "==> golangci-lint $(GOLANGCI_VERSION) (built from source into .tools; a minute or two)"
	@mkdir -p $(TOOLS)/bin && GOBIN=$(TOOLS)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/bin/golangci-lint $@

demo: setup-go setup-browsers build ## Show the main job on a real browser, installing what is missing
	@echo
	@bin/drover demo

build: ## Build every command into bin/
	@mkdir -p bin
	@echo "==> build: $(COMMANDS)"
	@$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(addprefix ./cmd/,$(filter drover-provider-%,$(COMMANDS)))
	@shipped=$$(cd bin && for p in $(patsubst drover-provider-%,%,$(filter drover-provider-%,$(COMMANDS))); do \
	  printf '%s=%s,' $$p $$(sha256sum drover-provider-$$p | cut -d' ' -f1); done); \
	$(GO) build -trimpath -ldflags "$(LDFLAGS) -X main.shipped=$$shipped -X main.builtIn=$(CURDIR)" -o bin/ $(addprefix ./cmd/,$(filter-out drover-provider-%,$(COMMANDS)))

extension: ## Pack the Chrome extension into bin/drover-chrome-extension.zip
	@mkdir -p bin
	@$(GO) run ./cmd/drover-provider-extension zip bin/drover-chrome-extension.zip
	@echo "==> bin/drover-chrome-extension.zip"

gen: setup-buf ## Write what is derived from the protocol: Go code, descriptor image, method reference
	$(BUF) format -w
	$(BUF) lint
	$(BUF) generate
	$(BUF) build -o proto/browser/v1/image.binpb
	$(GO) test ./proto/catalog -run TestReferenceIsFresh -update

lint: setup-lint setup-buf ## Check style, imports and common faults
	$(BUF) lint
	$(BUF) format -d --exit-code >/dev/null
	$(GOLANGCI) run ./...

fmt: ## Format Go and proto files
	$(GO) tool gofumpt -w $$(git ls-files '*.go' | grep -v '\.pb\.go$$')
	@[ ! -x $(BUF) ] || $(BUF) format -w

test: setup build ## Run the whole suite, real browsers included, installing what is missing
	@echo "==> test"
	$(GO) test -race -shuffle=on -p 1 -timeout 20m ./...

fuzz: ## Fuzz where bytes come in, FUZZTIME each
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz' || true); do \
	    echo "==> $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; done; done

bench: build setup-browsers ## Measure: codec, broker and plugin hop, page engine, provider, memory
	$(GO) test -run '^$$' -bench . -benchmem -p 1 ./...

clean: ## Remove what was built
	rm -rf bin .tools
