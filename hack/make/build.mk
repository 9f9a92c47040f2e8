# Programs, images and what is generated.

.PHONY: generate
generate: ## Write deep copies, clients, CRDs, RBAC, install manifest and generated docs.
	@hack/generate.sh

# Static binaries: they run in an image that holds nothing else.
PROGRAMS = $(notdir $(patsubst %/,%,$(wildcard cmd/*/)))

.PHONY: build
build: ## Build the programs of cmd into bin.
	@mkdir -p bin
	@for program in $(PROGRAMS); do \
	  echo "build: bin/$$program"; \
	  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' \
	    -o bin/$$program ./cmd/$$program; \
	done

.PHONY: images
images: build ## Build the image archives of operator, gateway, slipway-backup, monitor, demo and S3 server into bin, without Docker.
	@VERSION='$(VERSION)' hack/images.sh

# A release has the version in the file VERSION, not the one that git describe prints.
.PHONY: dist
dist: ## Make what a release ships in dist/<version>, from what is committed. SIGNING_KEY= signs it.
	@hack/dist.sh
