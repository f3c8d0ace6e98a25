# Gardenbus. `make run` is all that a fresh machine needs (Python 3.11 to 3.14, make, git).

# The best of those that are there, found once when it is needed; uv comes with any.
PYTHON ?= $(eval PYTHON := $$(shell sh deploy/choose-python.sh))$(PYTHON)
FOR_UV := $(if $(filter command environment,$(origin PYTHON)),$(PYTHON),python3)
DIR    ?= .gardenbus
ARGS   ?=
TESTS  ?= tests

UV        := $(or $(shell command -v uv 2>/dev/null),.tools/bin/uv)
BIN       := .venv/bin
MEMBERS   := $(wildcard pyproject.toml libs/*/pyproject.toml services/*/pyproject.toml tools/*/pyproject.toml cli/pyproject.toml)
INSTALLED := .venv/.installed
WITH_DEV  := .venv/.installed-dev

export UV_PYTHON_DOWNLOADS := never

# A landscape is a dozen processes, and most of what a process does at its start is to compile what it imports (0.8 of
# 1.3 s): it is compiled once, when it is installed, and what we wrote at its first import, whatever the shell says.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE

# Three times as many as there are cores: most tests wait for processes and periods nine tenths of their time.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 3 )))
# The long ones use the processors all the time, each with a landscape of its own.
LONG_WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))

.DEFAULT_GOAL := help
.PHONY: help run up down setup setup-dev test test-long test-at-rest test-contract test-e2e test-browser test-kube test-docker chaos fuzz simulate bench bench-guard bench-peers check format reference docs release-check version

help: ## what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(INSTALLED) ## install, start everything with the example landscape, show it (ARGS=--exit-when-settled)
	@exec $(BIN)/gardenbus up --dir $(DIR) -f examples/landscape $(ARGS)

up: $(INSTALLED) ## start an empty landscape in the background (ARGS="-f my.yaml")
	@exec $(BIN)/gardenbus up --dir $(DIR) --detach $(ARGS)

down: $(INSTALLED) ## stop what `make up` started
	@exec $(BIN)/gardenbus down --dir $(DIR)

setup: $(INSTALLED) ## install only; leaves .venv/bin/gardenbus

setup-dev: $(WITH_DEV) ## install what the tests need too

test: $(WITH_DEV) ## the tests of every day, on NATS and Redis of their own (TESTS=tests/unit)
	@exec $(BIN)/pytest -m "not docker and not long and not at_rest and not browser" -n $(WORKERS) --dist worksteal $(TESTS) $(ARGS)

test-long: $(WITH_DEV) ## the long proofs: kills, clusters and backups under load, for a minute each
	@exec $(BIN)/pytest -m "long and not docker" -n $(LONG_WORKERS) --dist worksteal $(TESTS) $(ARGS)

test-at-rest: $(WITH_DEV) ## whether the guard finds planted losses of speed (nothing else may run beside it)
	@exec $(BIN)/pytest -m at_rest tests/bench $(ARGS)

test-contract: $(WITH_DEV) ## the adapters against real servers
	@exec $(BIN)/pytest -m "not docker" tests/contract $(ARGS)

test-e2e: $(WITH_DEV) ## whole landscapes of real processes
	@exec $(BIN)/pytest -m "not docker" tests/e2e $(ARGS)

test-browser: $(WITH_DEV) ## the dashboard in a headless Chromium (skipped without one), pictures into .ci/artefacts/
	@GARDENBUS_SCREENSHOTS=$${GARDENBUS_SCREENSHOTS:-.ci/artefacts/screenshots} \
	  exec $(BIN)/pytest -n 2 --dist loadfile tests/browser $(ARGS)

test-kube: $(WITH_DEV) ## real control planes, and clients of the Kubernetes API (GARDENBUS_KUBE_BIN: directory of etcd, kube-apiserver and others)
	@test -n "$$GARDENBUS_KUBE_BIN" || \
	  { echo "GARDENBUS_KUBE_BIN must name a directory with etcd, kube-apiserver and others (.ci/kube builds one)"; exit 1; }
	@$(UV) sync --frozen --inexact --group kube --python $(PYTHON)
	@exec $(BIN)/pytest -m kube -n 2 --dist worksteal tests/kube $(ARGS)

test-docker: $(WITH_DEV) ## the compose file on a real engine (needs Docker)
	@exec $(BIN)/pytest -m docker tests/docker $(ARGS)

# Without ARGS both: single servers, and clusters, between which networks are cut.
chaos: $(WITH_DEV) ## faults of all kinds for 10 minutes, and whether all invariants hold (ARGS="--hours 3 --only kill,cut")
ifeq ($(ARGS),)
	@$(BIN)/python -m tests.chaos --minutes 5
	@exec $(BIN)/python -m tests.chaos --minutes 5 --cluster
else
	@exec $(BIN)/python -m tests.chaos $(ARGS)
endif

fuzz: $(WITH_DEV) ## random inputs for parsers, admission, the bus and the command line (ARGS="--inputs 100000 --seed 3")
	@exec $(BIN)/python -m tests.fuzz $(ARGS)

simulate: $(WITH_DEV) ## random orders of events and faults, in virtual time (ARGS="--schedules 9999 --seed 7")
	@PYTHONHASHSEED=0 exec $(BIN)/python -m tests.simulation $(ARGS)

bench: $(INSTALLED) ## how fast it is here, at reduced size, into bench-results/ (ARGS="scheduling --shoots 20000")
	@exec $(BIN)/gardenbus bench --reduced --output bench-results $(ARGS)

# Where the machine does not stay the same for so long as it takes, it says so and that is no failure.
bench-guard: $(INSTALLED) ## whether any process takes more than it did, in 4 minutes (ARGS=--accept writes figures and docs/performance.md)
	@$(BIN)/python -m gardenbus.bench.guard $(ARGS) || [ $$? -eq 3 ]

# The first build of the scheduler takes minutes.
bench-peers: $(INSTALLED) ## beside Gardener's and KubeFleet's schedulers (needs Go) and kube-apiserver (GARDENBUS_KUBE_BIN); ARGS=--page writes docs/performance.md
	@$(BIN)/python -m gardenbus.bench.peers $(ARGS)

reference: $(WITH_DEV) ## write the documentation's reference pages anew from the code
	$(BIN)/python -m gardenbus.docs docs/reference
	$(BIN)/python -m gardenbus.docs.bus_reference docs/reference

docs: $(WITH_DEV) ## the documentation as a site, into site/ (ARGS="serve" shows it)
	$(BIN)/zensical $(or $(ARGS),build --clean --strict)

# What no tool checks: modules of one user, fields that are read by name, handlers without a row, the files of a change.
HOUSE := $(patsubst %,tests/unit/architecture/test_%.py,ownership field_accesses tables files_of_a_change)

check: $(WITH_DEV) ## ruff, pyright (strict), the layers, the words and the tables
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	@for each in services/*/pyproject.toml; do $(BIN)/lint-imports --config $$each || exit; done
	$(BIN)/python -m gardenbus.docs.vocabulary
	$(BIN)/pytest -q -p no:cacheprovider $(HOUSE)

release-check: $(UV) ## build all wheels, install the client alone and run it, then with `up --example landscape`
	@$(PYTHON) deploy/release_check.py $(abspath $(UV))

# uv_build takes no version from elsewhere: the root's pyproject.toml is the source, and every member gets a copy of it.
version: $(UV) ## give all members the version of the root's pyproject.toml, or another one (VERSION=0.2.0)
	@test -z "$(VERSION)" || $(UV) version --frozen $(VERSION)
	@version=$$($(UV) version --short) && for member in $(filter-out ./,$(dir $(MEMBERS))); do \
	  $(UV) version --frozen --directory $$member $$version || exit; \
	done
	@$(UV) lock --python $(PYTHON)

format: $(WITH_DEV) ## format and sort imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

# --inexact: `make run` after `make test` takes nothing away.
$(INSTALLED): $(UV) uv.lock $(MEMBERS)
	@echo "Python: $(PYTHON) ($$($(PYTHON) --version)); make PYTHON=… takes another one"
	$(UV) sync --frozen --no-dev --inexact --python $(PYTHON)
	@touch $@

$(WITH_DEV): $(UV) uv.lock $(MEMBERS)
	@echo "Python: $(PYTHON) ($$($(PYTHON) --version)); make PYTHON=… takes another one"
	$(UV) sync --frozen --python $(PYTHON)
	@touch $(INSTALLED) $@

.tools/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Gardenbus needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11"; exit 1; }
	@mkdir -p .tools/bin
	@if $(FOR_UV) -m venv .tools/uv >/dev/null 2>&1; then \
	  .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check uv && ln -sf ../uv/bin/uv $@; \
	elif $(FOR_UV) -m pip --version >/dev/null 2>&1; then \
	  rm -rf .tools/uv; \
	  $(FOR_UV) -m pip install --quiet --disable-pip-version-check --target .tools/uv uv && ln -sf ../uv/bin/uv $@; \
	else \
	  rm -rf .tools/uv; \
	  echo "Neither uv nor pip nor venv is here. Install one of them (Debian: apt-get install python3-venv) and try again."; \
	  exit 1; \
	fi
