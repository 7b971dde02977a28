# Thin names for the commands that are worth one. Go is all that they need, besides
# git and the GNU tools of every Linux; what they fetch comes by the Go module proxy.
GO ?= go
VERSION ?= $(shell git describe --tags --match 'v*' 2>/dev/null | sed 's/^v//' | grep . || echo 0.1.0)
FLAGS = -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
MAINTAINER ?= Tidemark <tidemark@localhost.localdomain>
NFPM = $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
# The same tree gives the same packages, byte for byte.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1767225600)

.PHONY: build test bench ci demo cross packages
# bin/tidemark, stripped, for this machine.
build:
	CGO_ENABLED=0 $(GO) build $(FLAGS) -o bin/tidemark ./cmd/tidemark
# Every test that needs no installed peer.
test:
	$(GO) test ./...
# How fast single readings are taken from mosquitto, beside a subscriber that only counts.
bench:
	TIDEMARK_INTEROP=1 TIDEMARK_BENCH=1 $(GO) test ./test/interop -run '^TestPace$$' -count=1 -v
# Every check, as root on Debian; it installs the peers that it needs.
ci:
	bash .ci/run
# The whole product against a simulated plant.
demo:
	$(GO) run ./cmd/tidemark demo
# dist/tidemark-amd64, -arm64 and -arm, which then have to run.
cross:
	bash .ci/run cross

# dist/tidemark_VERSION_ARCH.deb and .tar.gz; armhf is ARMv7.
ARCHS ?= amd64 arm64 armhf
packages:
	VERSION='$(VERSION)' ARCHS='$(ARCHS)' MAINTAINER='$(MAINTAINER)' GO='$(GO)' FLAGS="$(FLAGS)" NFPM='$(NFPM)' bash systemd/package.sh
