# Thin names for the commands that are worth one; .ci/run is every check.
GO ?= go
VERSION ?= $(shell git describe --tags --match 'v*' 2>/dev/null | sed 's/^v//' | grep . || echo 0.1.0)
FLAGS = -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
MAINTAINER ?= Tidemark <tidemark@localhost.localdomain>
NFPM = $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
# The same tree gives the same packages, byte for byte.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)

.PHONY: build test ci demo cross packages
build:
	CGO_ENABLED=0 $(GO) build $(FLAGS) -o bin/tidemark ./cmd/tidemark
test:
	$(GO) test ./...
ci:
	bash .ci/run
demo:
	$(GO) run ./cmd/tidemark demo
cross:
	bash .ci/run cross

# dist/tidemark_VERSION_ARCH.deb and .tar.gz; armhf is ARMv7.
ARCHS ?= amd64 arm64 armhf
packages:
	VERSION='$(VERSION)' ARCHS='$(ARCHS)' MAINTAINER='$(MAINTAINER)' GO='$(GO)' FLAGS="$(FLAGS)" NFPM='$(NFPM)' bash systemd/package.sh
