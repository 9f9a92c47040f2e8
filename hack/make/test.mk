# Tests. Every suite runs through hack/testsum: readable output, and counts for TEST_COUNTS (a file) when that is set.

# Where a suite runs, from fast to slow:
#   unit           nothing but Go
#   fuzz           nothing but Go
#   h2spec         the tool of that name, which speaks HTTP/2 to the gateway             build tag h2spec
#   api            a real API server and etcd for each package, no nodes                 build tag apitest
#   fault          a real API server and etcd, with everything that can go wrong         build tag faulttest
#   e2e            a real single-node cluster with real pods                             build tag e2e
#   chaos          a cluster like that of e2e, with parts of it killed at random         build tag chaos
#   postgres       a cluster like that of e2e, with an image of PostgreSQL              build tag postgres
#   chartcluster   a cluster like that of e2e, without an operator: the tests install it build tag chartcluster
#   observability  Prometheus, the two programs and an API server without nodes          build tag observability
#   attack         the gateway's program and real servers from Debian                    build tag attack
#   change         a cluster like that of e2e, with a gateway changed under load         build tag change
#                  (a short run is part of e2e)
#   neighbours     a cluster like that of e2e, with tenants that abuse it                build tag neighbours
#   csi            a cluster like that of e2e, with volumes that can be snapshotted      build tag csi
#   peers          a cluster like that of e2e, with other implementations of the Gateway API build tag peers
#   conformance    a cluster like that of e2e, with the suite of the Gateway API         build tag conformance
#   csitest        the CSI driver of that cluster, with csi-test's sanity suite          build tag csitest
#   backup         the engine of backups, with failing storage, full disks and kills     build tag backuptest
#   backup faults  slipway-backup with every kind of fault, on a real S3 server too       build tag backupfaults
#   localkube      the local cluster itself, killed and repaired                         build tag selftest
TESTSUM = bin/testsum -counts '$(or $(TEST_COUNTS),/dev/null)'

# Additional flags for `go test`, for example TEST_FLAGS='-run TestRollback -count 10'.
TEST_FLAGS ?=

# The hash of the committed tree chooses the random inputs and the faults of the sample, so each change tries others. SEED=
# repeats them.
SAMPLE = $(or $(SEED),$(shell git rev-parse --short=12 'HEAD^{tree}'))

# Suites, from hack/affected/suites.txt: unit and API server, fuzz, HTTP/2 conformance, Helm chart, the monitor's record, the
# core of the conformance suite of the Gateway API, end to end, a sample of the faults.
.PHONY: test
test: bin/testsum bin/affected bin/localkube ## Run what the change can affect, and a fifth of the rest. FULL=1 runs all of every suite, BASE= compares with a commit, DRY=1 only says what would run. SEED= and DRAW= repeat.
	@echo 'test: SEED=$(SAMPLE) chooses the random inputs and the faults'
	@SAMPLE='$(SAMPLE)' hack/test.sh

.PHONY: check
check: bin/testsum bin/affected bin/localkube ## Look quickly at what is not committed, or at the last commit: format, lint, what is generated, tests of the changed packages. BASE=
	@hack/check.sh

# How many processes are busy beside the tests, and how often the tests run.
BUSY ?= 16
ROUNDS_LOADED = $(or $(ROUNDS),3)

.PHONY: test-loaded
test-loaded: bin/testsum bin/localkube ## Run all of test-go beside 16 busy processes, or BUSY, three times, or ROUNDS: no verdict may depend on how fast the machine is.
	@hack/test-loaded.sh '$(BUSY)' '$(ROUNDS_LOADED)'

# What has been proven is what later changes are compared with. bin/proven is written by a whole run that passed.
.PHONY: proven
proven: ## Note the last commit in .ci/proven, after make test FULL=1 has passed on it.
	@if [[ $$(cat bin/proven 2>/dev/null) != "$$(git rev-parse 'HEAD^{tree}')" ]]; then \
	  echo 'proven: make test FULL=1 has not passed on what is committed' >&2; exit 1; fi; \
	git rev-parse HEAD >.ci/proven; echo 'proven: commit .ci/proven'

# Also the suites that take hours, or need programs that the project does not build. docs/dev/testing.md says when to run
# them.
.PHONY: test-all
test-all: export FULL := 1
test-all: test test-localkube test-chart test-chart-cluster test-property test-crdcheck test-fuzz test-fault test-truth test-observability test-gateway-attack test-neighbours test-oidc test-conformance test-failover test-chaos test-chaos-deletion test-fault-long test-backup test-backup-faults test-backup-kill test-backup-postgres test-monitor test-monitor-streams test-monitor-long test-monitor-page test-e2e-backup-trouble test-csi test-csi-controllers test-csi-snapshots test-dist bench-gateway-change ## Run every test there is. Takes hours.

# PACKAGES= and MODULES= say which packages of the main module and which other modules test-go tests. Without them it is all.
named = $(filter command,$(origin $(1)))
GO_PACKAGES = $(if $(call named,PACKAGES),$(PACKAGES),./internal/controller/... ./...)
GO_MODULES = $(if $(call named,MODULES),$(MODULES),$$(hack/modules.sh own | grep -vx '[.]'))

# What fills the monitor's store is skipped with the race detector, because the inside of SQLite is not our code and takes ten times
# as long with it.
FILLED = ./internal/monitor/store ./test/streams
FILL_PACKAGES = $(if $(call named,PACKAGES),$(filter $(FILLED),$(PACKAGES)),$(FILLED))
FILL = $(if $(FILL_PACKAGES),go test -json -tags testing -count=1 -p 1 $(TEST_FLAGS) $(FILL_PACKAGES),true)

# The tag "testing" belongs to kopia: with it, keys of repositories are derived quickly, and not safely. The safe way takes
# seconds with the race detector, for each repository that a test opens. `make test-backup` runs without the tag.
.PHONY: test-unit
test-unit: bin/testsum ## Run the tests that need nothing but Go, in every module, with the race detector.
	@echo 'test-unit:'
	@{ failed=0; for module in $$(hack/modules.sh own); do \
	  PROPERTY_SEED='$(SAMPLE)' go -C "$$module" test -race -json -tags testing $(TEST_FLAGS) ./... || failed=1; \
	done; $(FILL) || failed=1; exit $$failed; } | $(TESTSUM)

# A test program is linked once for both, and while one package waits for its API server, others run.
.PHONY: test-go
test-go: bin/testsum bin/localkube ## Run the tests of test-unit and test-api at once, which is faster than one after the other. PACKAGES= MODULES=
	@echo 'test-go: SEED=$(SAMPLE)'
	@{ failed=0; packages='$(GO_PACKAGES)'; if [[ -n $$packages ]]; then \
	  PROPERTY_SEED='$(SAMPLE)' KUBEBUILDER_ASSETS=$$(bin/localkube assets) \
	  go test -race -json -tags apitest,testing -count=1 -timeout 25m -p 4 $(TEST_FLAGS) $$packages || failed=1; fi; \
	for module in $(GO_MODULES); do \
	  go -C "$$module" test -race -json -count=1 $(TEST_FLAGS) ./... || failed=1; \
	done; $(FILL) || failed=1; exit $$failed; } | $(TESTSUM)

.PHONY: test-property
test-property: bin/testsum bin/localkube ## Try all random inputs of the tests that try only a share of them in other suites.
	@echo 'test-property: SEED=$(SAMPLE)'
	@{ failed=0; export PROPERTY_SEED='$(SAMPLE)' PROPERTY_WHOLE=yes; go test -race -json -count=1 $(TEST_FLAGS) \
	  $$(git grep -lF 'property.Inputs(' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') || failed=1; \
	KUBEBUILDER_ASSETS=$$(bin/localkube assets) go test -race -json -count=1 -tags apitest,testing \
	  -run TestNothingIsLeftByAnOperatorThatDiesAtAnyWrite $(TEST_FLAGS) ./internal/controller/backuprun || failed=1; \
	exit $$failed; } | $(TESTSUM)

.PHONY: test-crdcheck
test-crdcheck: bin/testsum bin/localkube ## Compare what is said of changes of definitions, 400 random ones among them, with what an API server does, and check the largest that is checked.
	@echo 'test-crdcheck: SEED=$(SAMPLE)'
	@PROPERTY_SEED='$(SAMPLE)' PROPERTY_WHOLE=yes KUBEBUILDER_ASSETS=$$(bin/localkube assets) \
	  go test -json -tags monitortest,apitest,testing -count=1 -timeout 30m -run 'TestOracle|TestCheckOf' $(TEST_FLAGS) ./internal/monitor/crdcheck | $(TESTSUM)

# How much each fuzz target gets: so many inputs, or a time such as 60s. Default 200x, in the sample 100x.
FUZZTIME ?=

.PHONY: test-fuzz
test-fuzz: bin/testsum ## Try new inputs on every fuzz target, FUZZTIME each. CASE=name picks some, PACKAGES= those of some folders.
	@echo 'test-fuzz:'
	@hack/test-fuzz.sh '$(or $(FUZZTIME),200x)' '$(CASE)' $(PACKAGES) | $(TESTSUM)

.PHONY: test-fuzz-sample
test-fuzz-sample: bin/testsum ## Try new inputs on every fuzz target, FUZZTIME each, without learning from those before. CASE=name picks some, PACKAGES= those of some folders.
	@echo 'test-fuzz-sample:'
	@COVERAGE=no hack/test-fuzz.sh '$(or $(FUZZTIME),100x)' '$(CASE)' $(PACKAGES) | $(TESTSUM)

.PHONY: test-h2spec
test-h2spec: bin/testsum ## Let h2spec speak to the gateway, with TLS and without.
	@echo 'test-h2spec:'
	@H2SPEC=$$(hack/tool.sh h2spec) hack/test-tagged.sh h2spec -race -count=1 $(TEST_FLAGS) | $(TESTSUM)

.PHONY: test-helm
test-helm: bin/testsum ## Lint the Helm chart and compare what it renders, with the real Helm.
	@echo 'test-helm:'
	@HELM=$$(hack/tool.sh helm) hack/test-tagged.sh helm -count=1 $(TEST_FLAGS) | $(TESTSUM)

.PHONY: test-api
test-api: bin/testsum bin/localkube ## Run the tests that need an API server, with the race detector.
	@echo 'test-api:'
	@KUBEBUILDER_ASSETS=$$(bin/localkube assets) hack/test-tagged.sh apitest -race -count=1 -timeout 15m $(TEST_FLAGS) | $(TESTSUM)

# They wait for seconds that a machine busy with other suites does not keep, and take minutes.
.PHONY: test-monitor
test-monitor: bin/testsum bin/localkube ## Let the supervisor of the monitor follow servers that fail, and a real API server. Let 500 kinds appear; ask with many random rights; kill who stores 200 times.
	@echo 'test-monitor:'
	@KUBEBUILDER_ASSETS=$$(bin/localkube assets) go test -json -race -count=1 -timeout 30m -tags monitortest,apitest,testing $(TEST_FLAGS) ./internal/monitor/supervisor ./internal/operator/kindrole ./internal/monitor/recorder ./internal/monitor/server ./internal/monitor/store | $(TESTSUM)

# IMAGES=docs/images writes the images of docs/monitor-page.md again.
.PHONY: test-monitor-page
test-monitor-page: bin/testsum ## Open the web page of the monitor in Chromium, and look at it with axe-core. Needs npm, and root the first time.
	@echo 'test-monitor-page:'
	@hack/test-page.sh -timeout 15m $(TEST_FLAGS) | $(TESTSUM)

.PHONY: test-monitor-oracle
test-monitor-oracle: bin/testsum bin/localkube ## Kill, cut off and confuse the monitor for 20 s, or DURATION, while objects change, and compare what it has recorded. SEED=
	@echo 'test-monitor-oracle:'
	@go build -o bin/slipway-monitor ./cmd/slipway-monitor
	@go build -tags monitorplant -o bin/slipway-monitor-planted ./cmd/slipway-monitor
	@MONITOR=$(CURDIR)/bin/slipway-monitor MONITOR_PLANTED=$(CURDIR)/bin/slipway-monitor-planted KUBEBUILDER_ASSETS=$$(bin/localkube assets) \
	  go test -json -count=1 -timeout 3h -tags monitororacle,testing $(TEST_FLAGS) ./test/monitor | $(TESTSUM)

.PHONY: test-monitor-streams
test-monitor-streams: bin/testsum ## Let ten viewers read the monitor's streams for 10 minutes, or DURATION, while the machine is busy: none may fall silent.
	@echo 'test-monitor-streams:'
	@DURATION='$(or $(DURATION),10m)' go test -json -count=1 -timeout 3h -tags testing $(TEST_FLAGS) ./test/streams | $(TESTSUM)

.PHONY: test-monitor-long
test-monitor-long: ## The same for 30 minutes, or DURATION.
	@DURATION='$(or $(DURATION),30m)' $(MAKE) test-monitor-oracle

# What goes wrong with a backup on real pods, and how that is told, waits for minutes. The tests of the packages and the fault
# matrix try the same without pods in every run.
BACKUP_TROUBLE := TestBackups/(ARunWhosePodIsLost|WhatIsTakenFromABackup|ARunThatCannotSucceed|ADumpThatFails)

.PHONY: test-e2e
test-e2e: bin/testsum ## Run the end-to-end tests on a local cluster of their own. AREA=apps,backups,gateways,monitor picks some.
	@echo 'test-e2e:'
	@AREA='$(AREA)' SKIP='$(BACKUP_TROUBLE)' TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh e2e $(TEST_FLAGS)

.PHONY: test-e2e-backup-trouble
test-e2e-backup-trouble: bin/testsum ## Let a backup lose its pods, Jobs, keys and storage on a local cluster; what is left out of test-e2e.
	@echo 'test-e2e-backup-trouble:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh e2e -run '$(BACKUP_TROUBLE)' $(TEST_FLAGS)

.PHONY: test-truth
test-truth: bin/testsum ## Cause every problem that an object can have, on real pods, and compare what status says; prints the table. make test-e2e tries half of them.
	@echo 'test-truth:'
	@TRUTH=whole TRUTH_TABLE=$(CURDIR)/bin/truth-table.md TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh e2e -run TestStatusTellsEveryFault $(TEST_FLAGS); \
	  code=$$?; cat bin/truth-table.md; exit $$code

.PHONY: test-csi
test-csi: bin/testsum ## Let the sanity suite of csi-test speak to the CSI driver of local clusters. Needs root and a free loop device.
	@echo 'test-csi:'
	@command -v mkfs.btrfs >/dev/null || apt-get install --yes --no-install-recommends btrfs-progs >/dev/null
	@go -C hack/csi test -tags csitest -json -count=1 -timeout 10m $(TEST_FLAGS) . | $(TESTSUM)

.PHONY: test-csi-controllers
test-csi-controllers: bin/testsum bin/localkube ## Kill 100 runs, or KILLS, that read CSI volumes, beside the real controllers of snapshots, volumes and garbage; no cluster, no pods. SEED= repeats a run.
	@echo 'test-csi-controllers:'
	@CSI_PROGRAMS=$$(hack/csi.sh --programs) KILLS='$(or $(KILLS),100)' KUBEBUILDER_ASSETS=$$(bin/localkube assets) \
	  go test -json -tags apitest,testing,csicontrollers -count=1 -timeout 1h -run RealControllers $(TEST_FLAGS) ./internal/controller/backuprun | $(TESTSUM) -each

.PHONY: test-csi-snapshots
test-csi-snapshots: bin/testsum ## Back up CSI volumes from snapshots on a local cluster, and kill 100 runs, or KILLS. SEED= repeats a run.
	@echo 'test-csi-snapshots:'
	@KILLS='$(or $(KILLS),100)' TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh csi -timeout 3h $(TEST_FLAGS)

.PHONY: test-neighbours
test-neighbours: bin/testsum ## Abuse what one tenant of a cluster may write, and measure what another notices, on a local cluster of its own.
	@echo 'test-neighbours:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh neighbours $(TEST_FLAGS)

.PHONY: test-localkube
test-localkube: bin/testsum ## Test the local cluster itself: start, repair after kill -9 of each part, stop without a trace.
	@echo 'test-localkube:'
	@go -C hack/localkube test -tags selftest -json -count=1 -timeout 20m -run TestEndToEnd $(TEST_FLAGS) . | $(TESTSUM)

# Most of the time a run waits to see that nothing happens, so many run at a time. Those of Gateways have pods that watch
# more than ten kinds: more than 64 at a time are late on two processors. Runs leave thousands of namespaces in memory.
# With GOGC and GOMEMLIMIT, Go rarely collects garbage while there is memory left. The tests and the API server get both
# settings, each for itself.
comma := ,
FAULT_PARALLEL ?= $(if $(filter gateway,$(subst $(comma), ,$(KIND))),64,256)
FAULT_TEST = GOGC=400 GOMEMLIMIT=6GiB KUBEBUILDER_ASSETS=$$(bin/localkube assets) FAULT_TABLE=$(CURDIR)/bin/fault-table.md \
  go test -json -tags faulttest -count=1 -parallel $(FAULT_PARALLEL) ./test/fault

# $(call fault,FLAGS) plays cases, and prints their table even when cases fail.
fault = code=0; rm -f bin/fault-table.md; $(FAULT_TEST) -run '$(or $(CASE),.)' -kind '$(KIND)' $(1) $(TEST_FLAGS) | $(TESTSUM) || code=$$?; \
  cat bin/fault-table.md; exit $$code

.PHONY: test-fault
test-fault: bin/testsum bin/localkube ## Try every fault at every point of every scenario in test/fault. KIND=name,name plays some kinds, CASE=regexp some cases.
	@echo 'test-fault:'
	@$(call fault,-timeout 3h)

.PHONY: test-fault-sample
test-fault-sample: bin/testsum bin/localkube ## Try one case of half of the faults in every scenario, chosen by the commit. SEED= repeats a sample, CASE= one case of it, KIND= picks kinds.
	@echo 'test-fault-sample: the sample is SEED=$(SAMPLE)'
	@$(call fault,-timeout 30m -sample '$(SAMPLE)')

# How many mixes to play, and how many of them on one API server, where nothing removes what they leave.
MIXES ?= 10000
MIXES_AT_ONCE ?= 1000

.PHONY: test-fault-long
test-fault-long: bin/testsum bin/localkube ## Play 10,000 random mixes of steps and faults, or MIXES. SEED= repeats a run.
	@echo 'test-fault-long:'
	@seed=$(or $(SEED),$$(date +%s)); left=$(MIXES); failed=0; { while ((left > 0)); do \
	  round=$$((left < $(MIXES_AT_ONCE) ? left : $(MIXES_AT_ONCE))); \
	  rm -f bin/fault-table.md; \
	  $(FAULT_TEST) -timeout 2h -run TestRandom -mixes $$round -seed $$seed $(TEST_FLAGS) || failed=1; \
	  sed '1,/^$$/d' bin/fault-table.md >&2 || failed=1; \
	  seed=$$((seed + round)); left=$$((left - round)); \
	done; exit $$failed; } | $(TESTSUM)

# Each of the three starts a local cluster of its own, called slipway-chaos.
.PHONY: test-chaos
test-chaos: bin/testsum ## Kill the operator, the API server and etcd at random while applications change. SEED= and ROUNDS= repeat a run.
	@echo 'test-chaos:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh chaos -run 'TestASeed|TestWhatever' $(TEST_FLAGS)

.PHONY: test-chaos-deletion
test-chaos-deletion: bin/testsum ## Delete applications while the API server and etcd are killed; all has to go. SEED= and ROUNDS= repeat a run.
	@echo 'test-chaos-deletion:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh chaos -run TestWhatIsDeleted -timeout 3h $(TEST_FLAGS)

.PHONY: test-failover
test-failover: bin/testsum ## Measure how soon the standby acts when the leader ends, or is killed.
	@echo 'test-failover:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh chaos -run TestAStandby $(TEST_FLAGS)

.PHONY: test-chart
test-chart: bin/testsum bin/localkube ## Install, upgrade, roll back and uninstall the Helm chart with the real Helm and a real API server.
	@echo 'test-chart:'
	@HELM=$$(hack/tool.sh helm) OLD_RELEASE=$$(hack/old-release.sh) KUBEBUILDER_ASSETS=$$(bin/localkube assets) \
	  hack/test-tagged.sh chart -count=1 $(TEST_FLAGS) | $(TESTSUM)

.PHONY: test-chart-cluster
test-chart-cluster: bin/testsum ## Upgrade from the last release to the Helm chart, uninstall and install again, and install for some namespaces only: with pods, under load, on a local cluster of their own.
	@echo 'test-chart-cluster:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh chartcluster $(TEST_FLAGS)

# Full disks are small file systems that the tests mount, as root or in a user namespace of their own.
.PHONY: test-backup
test-backup: bin/testsum ## Try the engine of backups with failing storage, damaged repositories, full disks, and a few kills.
	@echo 'test-backup:'
	@hack/test-tagged.sh backuptest -race -count=1 -timeout 20m $(TEST_FLAGS) | $(TESTSUM)

# A proxy stands before a real S3 server. What comes of each kind of fault goes into bin/backup-fault-table.md.
.PHONY: test-backup-faults
test-backup-faults: bin/testsum bin/localkube ## Let every kind of fault happen to a snapshot and its verification, in a folder and on an S3 server; nothing may be called a backup that is none. CASE= and SEED= repeat.
	@echo 'test-backup-faults:'
	@VERSITYGW=$$(hack/tool.sh versitygw) go test -tags backupfaults -json -count=1 -timeout 1h \
	  -run 'TestNoFaultEndsAsASuccessThatIsNone|TestTheJudgeFindsFalseSuccesses' $(TEST_FLAGS) ./cmd/slipway-backup \
	  -args -fault-seed $(or $(SEED),$$(date +%s)) -fault-case '$(CASE)' -fault-table "$(CURDIR)/bin/backup-fault-table.md" | $(TESTSUM) -each
	@cat bin/backup-fault-table.md
	@DUE=500 KUBEBUILDER_ASSETS=$$(bin/localkube assets) go test -tags apitest,testing -json -count=1 -timeout 1h \
	  -run TestHundredsOfBackupsThatAreDueAtOnce ./internal/controller/backuprun | $(TESTSUM) -each

# `make test-backup` kills 20.
.PHONY: test-backup-kill
test-backup-kill: bin/testsum ## Kill slipway-backup 1,000 times, or KILLS, in all that it does; nothing completed may be lost. SEED= repeats a run.
	@echo 'test-backup-kill:'
	@go test -tags backuptest -json -count=1 -timeout 3h -run TestNothingCompletedIsLost $(TEST_FLAGS) ./cmd/slipway-backup \
	  -args -kills $(or $(KILLS),1000) -kill-seed $(or $(SEED),$$(date +%s)) | $(TESTSUM) -each

.PHONY: test-backup-postgres
test-backup-postgres: bin/testsum ## Back up a PostgreSQL database while clients write to it, restore it, and check every page and the balances, on a local cluster of its own.
	@echo 'test-backup-postgres:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh postgres $(TEST_FLAGS)

# The two start a local cluster called slipway-conformance. KEEP=yes leaves it running, and the next call uses it.
# docs/dev/gateway-conformance.md explains the variables.
.PHONY: test-conformance
test-conformance: bin/testsum ## Run the conformance suite of the Gateway API, and write the report into bin/conformance. RUN='name name', PROFILE=, CHANNEL=standard, WAIT=20s, KEEP=yes.
	@echo 'test-conformance:'
	@RUN='$(RUN)' PROFILE='$(PROFILE)' CHANNEL='$(CHANNEL)' WAIT='$(WAIT)' VERSION='$(VERSION)' \
	  TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh conformance $(TEST_FLAGS)

.PHONY: test-conformance-core
test-conformance-core: ## The same with the core tests alone, which every implementation has to pass.
	@CORE=yes $(MAKE) test-conformance

# Each of the two starts a local cluster of its own, called slipway-change. The first takes 15 to 20 minutes.
.PHONY: bench-gateway-change
bench-gateway-change: bin/testsum ## Change a gateway 1,000 times under a load of every protocol; nothing may fail. SEED= and CHANGES= repeat a run.
	@echo 'bench-gateway-change:'
	@CHANGES='$(or $(CHANGES),1000)' REQUESTS='$(or $(REQUESTS),1000000)' STREAMS='$(or $(STREAMS),1000)' RATE='$(or $(RATE),1200)' SEED='$(SEED)' \
	  TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh change -run TestNothingIsLost $(TEST_FLAGS)

.PHONY: bench-gatewayapi
bench-gatewayapi: bin/testsum ## Measure on real pods how soon Gateways and HTTPRoutes are served and told of, and what many that change cost. ROUTES= SAMPLES=
	@SAMPLES='$(SAMPLES)' ROUTES='$(ROUTES)' TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh change -run TestCostOfHTTPRoutes $(TEST_FLAGS)

# The others are built when they are first needed, which takes minutes.
.PHONY: bench-peers
bench-peers: bin/testsum ## Measure Slipway beside Traefik, and beside the control plane of Envoy Gateway, as implementations of the Gateway API, on one cluster with one script. ROUNDS= ROUTES= MORE= ONLY=
	@echo 'bench-peers:'
	@ROUNDS='$(ROUNDS)' ROUTES='$(ROUTES)' MORE='$(MORE)' ONLY='$(ONLY)' TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh peers -timeout 90m $(TEST_FLAGS)
	@cat bin/peers.md

.PHONY: bench-listenersets
bench-listenersets: bin/testsum ## Measure on real pods when many ListenerSets with many routes are told of and served, and what that costs. SETS= SET_ROUTES=
	@SETS='$(SETS)' SET_ROUTES='$(SET_ROUTES)' TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh change -run TestCostOfListenerSets $(TEST_FLAGS)

.PHONY: bench-gateway-change-propagation
bench-gateway-change-propagation: bin/testsum ## Measure on real pods how soon a changed route is served through the Service, and called live.
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-e2e.sh change -run TestPropagation $(TEST_FLAGS)

.PHONY: bench-webapp
bench-webapp: bin/localkube ## Measure the WebApp controller against a real API server: writes, time, memory.
	@KUBEBUILDER_ASSETS=$$(bin/localkube assets) go test -tags scale -count=1 -timeout 60m -v $(TEST_FLAGS) ./test/scale

.PHONY: bench-gateway-propagation
bench-gateway-propagation: bin/localkube ## Measure how soon a gateway serves what the API server has accepted.
	@KUBEBUILDER_ASSETS=$$(bin/localkube assets) go test -tags scale -count=1 -timeout 60m -v $(TEST_FLAGS) ./test/scale/propagation

# Prometheus is built when it is first needed, which takes two minutes.
.PHONY: test-observability
test-observability: bin/testsum bin/localkube build ## Let a real Prometheus scrape operator, monitor and gateway, and run every alert, rule and query of the dashboards.
	@echo 'test-observability:'
	@PROMTOOL=$$(hack/tool.sh promtool) PROMETHEUS=$$(hack/tool.sh prometheus) OPERATOR=$(CURDIR)/bin/slipway-operator GATEWAY=$(CURDIR)/bin/slipway-gateway \
	  MONITOR=$(CURDIR)/bin/slipway-monitor KUBEBUILDER_ASSETS=$$(bin/localkube assets) hack/test-tagged.sh observability -count=1 -timeout 15m $(TEST_FLAGS) | $(TESTSUM)

.PHONY: test-oidc
test-oidc: ## Log in at a real OpenID Connect provider, which is built first.
	go build -C test/oidc/provider -o $(CURDIR)/bin/oidc-provider .
	OIDC_PROVIDER=$(CURDIR)/bin/oidc-provider go test -tags oidc -count=1 -run TestARealProvider ./internal/gateway/proxy

# The attacks with the recording backend alone are part of `make test-unit`.
.PHONY: test-gateway-attack
test-gateway-attack: ## Attack the gateway with raw bytes, with nginx, Apache, HAProxy, Tomcat and Node behind it, and two of them in front.
	@TEST_COUNTS='$(TEST_COUNTS)' hack/gateway-attack.sh $(TEST_FLAGS)

# PLANT=yes measures a monitor that forgets one change in ten: Live has to fail. docs/performance.md has the variables for sizes.
.PHONY: bench-monitor
bench-monitor: bin/localkube ## Measure slipway-monitor. PART='Replayed|Live|Queries|Latency|Memory|Cycles|Disconnected|Start' picks some.
	@go build -o bin/slipway-monitor ./cmd/slipway-monitor
	@MONITOR=$(CURDIR)/bin/slipway-monitor KUBEBUILDER_ASSETS=$$(bin/localkube assets) go test -tags monitorbench$(if $(PLANT),$(comma)monitorplant) \
	  -count=1 -timeout 60m -v -run '^Test($(or $(PART),.*))$$' $(TEST_FLAGS) ./test/monitorbench

# BENCH_FLAGS='-rounds 1 -plain 1 -policies ""' measures less; bin/gatewaybench -h lists them.
.PHONY: bench-gateway
bench-gateway: ## Measure the gateway beside nginx, Caddy and Traefik, each on one core.
	@hack/bench-gateway.sh $(BENCH_FLAGS)

# BENCH_FLAGS='-test.benchtime 10x' measures less.
.PHONY: bench-baseline
bench-baseline: ## Measure the micro benchmarks of the gateway COUNT= (20) times, for benchstat: bin/bench/<commit>.txt.
	@COUNT='$(or $(COUNT),20)' hack/bench-baseline.sh $(BENCH_FLAGS)

# BENCH_FLAGS='-large-mib 256' measures less; bin/backupbench -h lists them. Everything takes about an hour, and 45 GiB.
.PHONY: bench-backup
bench-backup: ## Measure slipway-backup beside the bare engine and restic: time, memory, stored bytes.
	@hack/bench-backup.sh $(BENCH_FLAGS)

# The programs of a release for arm64 run under qemu.
.PHONY: test-dist
test-dist: ## Build the release of the last commit twice, compare, and check archives, images, SBOMs, licences and signatures.
	@echo 'test-dist:'
	@TEST_COUNTS='$(TEST_COUNTS)' hack/test-dist.sh $(TEST_FLAGS)

.PHONY: dist-reproducible
dist-reproducible: ## Build the release of the last commit in two folders, the second time from nothing, and compare every byte.
	@FRESH=1 hack/test-dist.sh -run TestTwoBuildsAreEqual

# To be run after the last change of a version's code. Once the version has a tag, its record stays as it is.
.PHONY: record-release
record-release: bin/testsum bin/localkube ## Record what the version in VERSION leaves in a cluster: the fixtures of F12, once the code is final.
	@version=$$(<VERSION); \
	  if [[ -n $$(git tag --list "$$version") ]]; then echo "record-release: $$version has a tag, so its fixtures stay as they are" >&2; exit 1; fi; \
	  rm -rf test/fault/testdata/*/releases/"$$version"; \
	  $(FAULT_TEST) -timeout 30m -run '^TestUpgrade$$' -record "$$version" $(TEST_FLAGS) | $(TESTSUM); \
	  git status --short test/fault/testdata

# These are always built: the Go build cache knows better than make what is out of date.
.PHONY: bin/testsum
bin/testsum:
	@go build -o $@ ./hack/testsum

.PHONY: bin/affected
bin/affected:
	@go build -o $@ ./hack/affected

.PHONY: bin/localkube
bin/localkube:
	@CGO_ENABLED=0 go -C hack/localkube build -o ../../$@ .

.PHONY: bin/image
bin/image:
	@CGO_ENABLED=0 go -C hack/image build -o ../../$@ .
