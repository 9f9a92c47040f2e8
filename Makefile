# Slipway. `make help` lists what there is; the recipes live in hack/make by topic, their longer parts in hack/*.sh.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Suites and generators use the whole machine each.
.NOTPARALLEL:

# What a program says about itself. Outside a git checkout it is a development build of unknown origin.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# hack/tool.sh builds a pinned tool when it is first needed and prints its path.
TOOL := hack/tool.sh

include hack/make/build.mk
include hack/make/test.mk
include hack/make/verify.mk
include hack/make/cluster.mk

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-14s %s\n", $$1, $$2 }'
