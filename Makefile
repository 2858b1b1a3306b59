# Three commands do everything on a fresh host: `make try`, `make demo` and `make test`.
# They install what is missing; there is no other set-up step.

SHELL := /bin/bash
.DEFAULT_GOAL := help

CLUSTER ?= dev
CONTROLLER_GEN := hack/tool controller-gen
LINT = $(shell hack/tool golangci-lint)
E2E := go -C e2e run

# Nested modules that are not part of the test of the cluster: importers of the
# root module do not get their dependencies.
MODULES := examples/list-vmis examples/manager vmi/client/fake/interop images/demo-guest/init images/tools/peer e2e/toolchain/csi e2e/toolchain/policy e2e/toolchain/prometheus e2e/toolchain/registry

# A build needs no version control. The other settings are those of all that is built for
# clusters and images: what is compiled for one of them is compiled for all, whatever the
# folder of the checkout is.
export GOFLAGS := -buildvcs=false -trimpath
export CGO_ENABLED := 0

.PHONY: help
help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

FILE ?= examples/vmi-hello.yaml

.PHONY: try
try: ## Boot a manifest on this host, without Kubernetes (FILE=name ARGS="flags of run-vmi")
	@./hack/try '$(FILE)' $(ARGS)

.PHONY: demo
demo: ## Start a local Kubernetes, boot a VMI in it and show it working (CLUSTER=name)
	@echo '== Build the demo (the first time this takes a minute or two)'
	@$(E2E) ./cmd/podvisor-demo up

.PHONY: demo-down
demo-down: ## Remove the demo and its cluster (CLUSTER=name)
	@$(E2E) ./cmd/podvisor-demo down

.PHONY: cluster-up
cluster-up: ## Start a local Kubernetes with two nodes (CLUSTER=name)
	@echo '== Build the cluster program (the first time this takes a minute or two)'
	@$(E2E) ./cmd/podvisor-cluster up --name $(CLUSTER)

.PHONY: install
install: ## Install Podvisor into the local Kubernetes, without the demo (CLUSTER=name)
	@$(E2E) ./cmd/podvisor-install --name $(CLUSTER)

.PHONY: cluster-down
cluster-down: ## Remove the local Kubernetes (CLUSTER=name)
	@$(E2E) ./cmd/podvisor-cluster down --name $(CLUSTER)

.PHONY: images
images: ## Build all container images (VERSION=v1.2.3: what they say that they are, TAG=name)
	@$(E2E) ./cmd/podvisor-images $(if $(VERSION),-version $(VERSION)) $(if $(TAG),-tag $(TAG)) build

# Where a release is written. It is in no commit.
RELEASE ?= $(CURDIR)/_output/release/podvisor-$(VERSION)

.PHONY: release
release: ## Write a release into a folder (VERSION=v1.2.3 REGISTRY=registry.example/podvisor)
	@$(E2E) ./cmd/podvisor-release -version '$(VERSION)' -registry '$(REGISTRY)' make '$(RELEASE)'

.PHONY: push
push: ## Upload the images of a release (VERSION=v1.2.3 or RELEASE=folder, REGISTRY=..., INSECURE=1)
	@$(E2E) ./cmd/podvisor-release -registry '$(REGISTRY)' $(if $(INSECURE),-insecure) push '$(abspath $(RELEASE))'

.PHONY: images-lock
images-lock: ## Rebuild the images of the newest packages of their suites, and write images/lock.yaml
	@$(E2E) ./cmd/podvisor-images lock
	@$(E2E) ./cmd/podvisor-images build

.PHONY: test
test: ## Install what is missing and run all tests
	@./hack/test

.PHONY: test-race
test-race: ## Run the end-to-end tests with Podvisor's programs built to find races
	@RACE=1 ./hack/test end-to-end

.PHONY: test-repeat
test-repeat: ## Run the unit and edge tests again and again on a busy host (RUNS=20)
	@./hack/test-repeat $(RUNS)

.PHONY: test-attacks
test-attacks: ## Repeat the attacks of the tests and the fuzz targets for hours (FUZZTIME=1m each, IN=folder)
	@./hack/test-attacks $(IN)

.PHONY: test-crashes
test-crashes: ## Kill and stop launchers, libvirt daemons, containerd and kubelets at every state of a VMI (COMPONENT=name KIND=name: only these)
	go -C e2e test -count=1 -timeout 12h -parallel 8 -v -run '^TestCrashes$$' . -whole -component '$(COMPONENT)' -kind '$(KIND)'

# The tests of guests that move between nodes which take longer with more moves.
MIGRATIONS := ^(TestADrainMovesEveryVMIAndEnds|TestAnIdleGuestThatMovesAnswersUntilTheSwitch|TestAGuestMovesThereAndBackAndItsUsersGoOn|TestAGuestThatMovesKeepsItsTPMAndItsFirmware|TestAClaimForManyNodesMovesAndOneForASingleNodeDoesNot
MIGRATIONS := $(MIGRATIONS)|TestAGuestThatMemoryCannotBeSentOfInTimeStaysAndIsLive|TestAGuestThatMovesPowersOffOnceWhenItIsToEnd)$$

.PHONY: test-migrations
test-migrations: ## Move guests 20 times there and back, for two minutes over a link that is too slow, and 8 for a drain (MOVES=20 SLOW=2m DRAINED=8)
	go -C e2e test -count=1 -timeout 90m -parallel 2 -v -run '$(MIGRATIONS)' . -moves $(or $(MOVES),20) -idle $(or $(MOVES),20) -slow $(or $(SLOW),2m) -drained $(or $(DRAINED),8)

.PHONY: test-faults
test-faults: $(if $(COMPONENT)$(KIND),,test-crashes) ## Inject each fault at every step of a trace; hours (COMPONENT=name KIND=name: only these; COMPONENT=virt-controller POOLS=true: those of a pool, ten minutes)
	go -C e2e test -count=1 -timeout 24h -v -run '^TestPoints$$' ./fault -whole -pools=$(or $(POOLS),false) -component '$(COMPONENT)' -kind '$(KIND)'

.PHONY: test-proofs
test-proofs: ## Take away one field after the other, and require that the test of its effect fails; hours (FIELDS=regexp, TESTS=regexp)
	go run ./internal/mutate -fields '$(FIELDS)' -tests '$(TESTS)'

.PHONY: test-flow
test-flow: ## Send between pods and guests for long, and require every byte (FLOW=10m)
	FLOW=$(or $(FLOW),10m) go -C e2e test -count=1 -timeout 60m -v -run '^TestGuestsAreOnThePodNetworkAsPodsAre$$' .

.PHONY: test-virtctl
test-virtctl: ## Build an unmodified virtctl of KubeVirt and do with it all that it can
	@echo '== Build virtctl (the first time this takes minutes)'
	VIRTCTL="$$($(E2E) ./cmd/podvisor-virtctl)" && export VIRTCTL && go -C e2e test -tags virtctl -count=1 -timeout 30m -v -run '^TestAnUnmodifiedVirtctlWorks$$' .

# The release before the first one is the commit before there were releases.
PREVIOUS ?= c58b14300f6182783106c2a68ba9313d3619bc73

.PHONY: test-metrics
test-metrics: ## Have a real Prometheus read a cluster in which VMIs come and go, and require that no series stays and no alert is raised (VMIS=500)
	go -C e2e test -tags metrics -count=1 -timeout 3h -v -run '^TestAPrometheusReadsAHealthyClusterAndRaisesNoAlert$$' . -vmis $(or $(VMIS),500)

.PHONY: test-release
test-release: ## Make a release twice, boot a guest of arm64, roll back to the release before and upgrade again; Helm on the oldest Kubernetes (PREVIOUS=tag)
	PREVIOUS=$(PREVIOUS) go -C e2e test -tags release -count=1 -timeout 90m -p 1 -v \
		-run '^(TestAReleaseIsTheSameBytesWhereverItIsMade|TestAGuestOfARMBootsAndPowersOffOnAHostOfX86|TestAGuestOfTheEarlierImageFindsItsStateUnderThisOne|TestPodsPullTheirImagesAnewFromARegistryThatAsksWhoItIs|TestARollbackAndAnUpgradeLeaveVMIsRunning|TestHelm.*OnTheOldestKubernetes)$$' ./release ./runvmi ./apiserver .

.PHONY: bench
bench: ## Measure against a plain pod: start, deletion, API writes, memory, admission; streams against the shortest way
	@$(E2E) ./cmd/podvisor-bench

.PHONY: bench-scale
bench-scale: ## Measure what 100, 1,000 and 3,000 VMIs and VMs cost, with simulated nodes; up to an hour (ARGS="flags of podvisor-scale")
	@echo '== Build the cluster program and Podvisor (the first time this takes a minute or two)'
	@$(E2E) ./cmd/podvisor-scale $(ARGS)

.PHONY: causes
causes: ## Measure how long VMIs take to say what is wrong, for the commonest mistakes
	@$(E2E) ./cmd/podvisor-causes

.PHONY: examples
examples: ## Count which manifests apply unchanged and run (MANIFESTS="FILE...")
	@$(E2E) ./cmd/podvisor-examples $(abspath $(MANIFESTS))

.PHONY: generate
generate: ## Write the generated files anew
	$(CONTROLLER_GEN) object paths=./vmi/...
	go run ./internal/apigen -controller-gen '$(CONTROLLER_GEN)'
	go run ./internal/kindgen
	go run ./internal/sizegen
	go run ./internal/entrygen
	go run ./internal/metricgen
	go run ./internal/applygen -controller-gen '$(CONTROLLER_GEN)'

.PHONY: lint
lint: ## Look for unformatted code and suspicious constructs
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'not formatted: run gofmt -w on the files above' >&2; exit 1; }
	go vet ./... && go -C e2e vet -tags virtctl,release,metrics ./...
	$(LINT) run ./... && cd e2e && $(LINT) run --config ../.golangci.yaml ./...
	@for m in $(MODULES); do echo "lint $$m"; go -C $$m vet ./... && (cd $$m && $(LINT) run --config $(CURDIR)/.golangci.yaml ./...) || exit 1; done

.PHONY: modules
modules:
	@echo $(MODULES)
