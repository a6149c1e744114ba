# A dozen verbs, one line each. `make` lists them.
.PHONY: help build test gpu short race stress lint bench fuzz cover cross ci speedrun clean
export CGO_ENABLED ?= 0

help: ## list the verbs
	@sed -n 's/^\([a-z]*\): .*## /\1\t/p' Makefile | expand -t 12
build: ## one binary without cgo: bin/antiphase
	go build -trimpath -o bin/ ./cmd/antiphase
test: ## every test
	go test ./...
gpu: build ## what tools/gpu/check.sh runs on a GPU machine: the binary and the GPU's tests, in bin/
	for p in device/cuda train hf; do go test -c -o bin/$$(basename $$p).test ./$$p || exit 1; done
short: ## the tests that take little time
	go test -short ./...
race: ## the packages that run goroutines under the race detector (needs gcc)
	.ci/run race
stress: ## AMX kernels for ten minutes under garbage collection and signals
	ANTIPHASE_STRESS=10m go test -run Stress -timeout 20m ./internal/simd
lint: ## format, vet, staticcheck, house rules
	.ci/run format tidy vet lint
bench: ## benchmarks: make bench PKG=./device/cpu
	go test -run '^$$' -bench . -benchmem $(or $(PKG),./...)
fuzz: ## every fuzz target: make fuzz FUZZTIME=1m
	.ci/run fuzz
cover: ## coverage by function, and bin/cover.html
	mkdir -p bin && go test -short -coverprofile bin/cover.out ./... && go tool cover -html bin/cover.out -o bin/cover.html && go tool cover -func bin/cover.out
cross: ## type-check and link for the other systems
	.ci/run cross link
ci: ## all that CI runs
	.ci/run
speedrun: ## train a Transformer, DIFF and DIFF V2 side by side and write a report
	go run ./cmd/antiphase speedrun
clean: ## remove what the verbs above wrote
	rm -rf bin
