# Thin names for the commands that are worth one; .ci/run is every check.
GO ?= go
FLAGS = -trimpath -ldflags '-s -w'

.PHONY: build test ci demo cross
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
