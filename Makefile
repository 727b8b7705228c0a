# `make help` says what there is. Each target sets up what it needs: uv, the Python environment, the control plane's
# programs. Nothing has to be installed beforehand but python3 (3.11 or newer), make and git.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON3 ?= python3
# uv looks for a Python itself, and need not come upon the one that was asked for.
ifneq ($(origin PYTHON3),file)
export UV_PYTHON ?= $(PYTHON3)
endif
BIN := .venv/bin
TESTS ?= tests
UNIT_TESTS ?= tests/agent tests/certs tests/crds tests/service tests/webhooks
# Much of a test on real servers is waiting: three workers, each with servers of its own, keep two cores busy.
WORKERS ?= 3

# uv brings its own list of authorities; trust those of the machine, as Python and Go do, where it has a list.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem),)
export UV_SYSTEM_CERTS ?= true
endif

# Without byte code every start of Python takes twice as long, and tests start hundreds.
export UV_COMPILE_BYTECODE ?= 1
PACKAGES := agent bench certs charts crds local service tests webhooks

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup ## Watch machines come and go on a real control plane on this machine
	@$(BIN)/5spot demo

.PHONY: test
test: binaries helm ## Run all tests; TESTS=tests/crds runs a part of them, WORKERS=0 one after the other
	@$(BIN)/python -m compileall -q $(PACKAGES)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

# All tests run on the Python at hand, in CI the oldest that we support. The image has a newer one, and a standard library
# that behaves otherwise here and there.
IMAGE_PYTHON := $(shell sed -n 's/^ARG PYTHON=python:\([0-9]*\.[0-9]*\).*/\1/p' Dockerfile)
PYENV ?= $(HOME)/.pyenv

# Where Chromium is missing, the tests install it with apt-get, and say so.
.PHONY: browser
browser: binaries helm ## Run the tests of the console in a real browser, and print how soon pages are drawn
	@$(BIN)/python -m pytest -q -s $(or $(ARGS),tests/browser)

.PHONY: pictures
pictures: binaries ## Make the screenshots in docs/images again
	@PICTURES=docs/images $(BIN)/python -m pytest -q tests/browser/test_pages.py tests/browser/test_report_page.py -k "every_page or asks_for_nothing"

.PHONY: newer
newer: binaries ## Run the tests of single modules on the Python of the image, if this machine has it
	@for python in "$$(command -v python$(IMAGE_PYTHON) || true)" $(PYENV)/versions/$(IMAGE_PYTHON).*/bin/python$(IMAGE_PYTHON) ""; do \
	if [ -x "$$python" ] && "$$python" -c "" 2> /dev/null; then break; fi; done; \
	if [ -z "$$python" ]; then echo "nothing was tried on Python $(IMAGE_PYTHON): this machine has none"; exit 0; fi; \
	UV_PROJECT_ENVIRONMENT=.venv-newer "$$($(PYTHON3) .ci/get-uv)" sync --frozen --quiet --python "$$python"; \
	.venv-newer/bin/python -m pytest -q -n $(WORKERS) $(UNIT_TESTS)

.PHONY: lint
lint: setup ## Check style, types, which folder may import which, and that generated files are up to date
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@for module in $(GENERATORS); do $(BIN)/python -m $$module --check; done

# In this order: the chart copies the CRD.
GENERATORS := crds.generate charts.generate service.reference

.PHONY: generate
generate: setup ## Write all generated files: CRD, policies, chart files, reference pages, table of rules
	@for module in $(GENERATORS); do $(BIN)/python -m $$module; done

.PHONY: hooks
hooks: ## Have git run `make lint` before every commit in this checkout
	@hook="$$(git rev-parse --git-path hooks)/pre-commit"; \
	if [ -e "$$hook" ] && ! cmp -s .ci/pre-commit "$$hook"; then \
	echo "error: $$hook exists and is another one; add 'make lint' to it yourself" >&2; exit 1; fi; \
	install -D -m 755 .ci/pre-commit "$$hook" && echo "git runs 'make lint' before every commit: $$hook"

.PHONY: docs
docs: .venv-docs/.ready ## Make the documentation's pages in site/; any warning fails it
	@rm -rf site && .venv-docs/bin/sphinx-build --fail-on-warning --keep-going --quiet -d .venv-docs/doctrees docs site
	@! grep -rlE '(src|href|url)[=(]["'"'"']?(https?:)?//[^"]*\.(js|css|woff2?|png|svg)' site --include=*.html --include=*.css \
	|| { echo "these pages load something from elsewhere and could not be read offline" >&2; exit 1; }
	@echo "open site/index.html"

# Apart from .venv, which stays small: who only runs or tests the operator needs no site generator.
.venv-docs/.ready: pyproject.toml uv.lock
	@uv="$$($(PYTHON3) .ci/get-uv)" && echo "installing what the docs need into .venv-docs" >&2 && \
	UV_PROJECT_ENVIRONMENT=.venv-docs "$$uv" sync --frozen --only-group docs && touch $@

.PHONY: bench
bench: binaries ## Run the benchmarks and print their figures
	@shopt -s nullglob; scripts=(bench/[a-z]*.py); \
	if [ $${#scripts[@]} -eq 0 ]; then echo "There are no benchmarks yet: bench/ is empty."; fi; \
	failed=0; for script in "$${scripts[@]}"; do name="$${script%.py}"; echo "== $$name"; \
	$(BIN)/python -m "$${name//\//.}" || failed=1; done; exit $$failed

.PHONY: chaos
chaos: binaries ## Let every write meet every fault, and stop replicas a hundred times; writes the table in docs/reliability.md
	@$(BIN)/python -m tests.chaos $(ARGS)
	@if [ -z "$(ARGS)" ]; then FENCING_RUNS=100 $(BIN)/python -m pytest -q tests/integration/test_fencing.py; fi

.PHONY: soak
soak: binaries ## Keep three replicas busy for three minutes and kill them now and then; MINUTES=30 for longer
	@SOAK_MINUTES=$(or $(MINUTES),3) $(BIN)/python -m pytest -q -s tests/integration/test_soak.py

.PHONY: cluster
cluster: binaries ## Start a cluster with a real node and the operator's image on this machine; needs Linux and root
	@$(BIN)/python -m local.node

# One after the other: all tests share the one node that a machine can have.
.PHONY: cluster-test
cluster-test: binaries helm ## Run the tests of chart and image on a real node; skipped without Linux and root
	@$(BIN)/python -m local.node --prepare
	@$(BIN)/python -m pytest -p no:cacheprovider $(or $(ARGS),tests/cluster)

.PHONY: sbom
sbom: ## List what the image contains, as CycloneDX, in dist/5spot.cdx.json
	@$(PYTHON3) .ci/sbom dist/5spot.cdx.json

.PHONY: release
release: setup ## Make everything that a release needs in dist/; REPOSITORY=registry.example.com/5spot says where the image will be
	@$(BIN)/python -m release --repository "$(REPOSITORY)" --source "$(SOURCE)" $(ARGS)

.PHONY: binaries
binaries: setup ## Build the programs that tests and demo start into the user's cache, unless they are there
	@for part in binaries kubeadm devmachine schemas; do $(BIN)/python -m local.$$part > /dev/null; done

.PHONY: helm
helm: setup ## Build the helm and the clusterctl that tests use into the user's cache, unless they are there
	@for part in helm clusterctl; do $(BIN)/python -m local.$$part > /dev/null; done

.PHONY: setup
setup: .venv/.ready ## Fetch uv and install what uv.lock names into .venv

.venv/.ready: pyproject.toml uv.lock
	@uv="$$($(PYTHON3) .ci/get-uv)" && echo "installing what uv.lock names into .venv" >&2 && "$$uv" sync --frozen && touch $@

.PHONY: clean
clean: ## Remove what the targets made in this checkout; caches in the home folder stay
	@rm -rf .venv .venv-docs .venv-newer .tools dist site .test-logs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
