# The gate. `verify` is what must pass before anything is merged.

.PHONY: verify
verify: ## Generate, tidy, format, lint, check for vulnerabilities and licences; fail when that changed a file or anything is untracked.
	@hack/verify.sh

.PHONY: fmt
fmt: ## Format all Go files with gofumpt.
	@$$($(TOOL) gofumpt) -l -w .

.PHONY: lint
lint: ## Run golangci-lint on every module of our own.
	@hack/lint.sh

.PHONY: shape
shape: ## Check that no type, package or line grows beyond its limit, and that package comments list their files.
	@go run ./hack/shape

.PHONY: vuln
vuln: ## Run govulncheck on every module of our own, when its database is reachable.
	@hack/vuln.sh

.PHONY: licenses
licenses: ## Check that everything linked into a program is under a licence that we may ship.
	@hack/licenses.sh check

.PHONY: web
web: ## Check that the web page of the monitor is what its sources give.
	@hack/web.sh check

.PHONY: tidy
tidy: ## Run go mod tidy in every module, except for those that only a measurement or a long test builds.
	@hack/modules.sh tidy | while read -r module; do echo "tidy: $$module"; go -C "$$module" mod tidy; done
