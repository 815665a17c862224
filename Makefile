# Everything a person types, and what `sam build` calls. `make help` lists it.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv/bin
SETUP := .venv/setup.stamp

.PHONY: help setup demo test check format lint types layers build-WorkerFunction build-CoordinatorFunction build-DispatchFunction build-DecodeFunction build-EncodeFunction

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup:  ## Create the environments in .venv* (the other targets do it when needed)
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("polarlambda needs Python 3.11 or newer, and $(PYTHON) is %d.%d. Name another: make setup PYTHON=python3.12" % sys.version_info[:2])'
	@$(PYTHON) scripts/setup.py
	@touch $(SETUP)

$(SETUP): pyproject.toml scripts/setup.py $(wildcard requirements/*.txt)
	@$(MAKE) setup

demo: $(SETUP)  ## Encode photographs, multiply on 64 local workers, watch the estimate, decode exactly
	@$(VENV)/polarlambda demo

test: $(SETUP)  ## Run all tests
	@$(VENV)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

check: $(SETUP)  ## What CI runs: format, lint, types, layers, tests
	@$(MAKE) format lint types layers test

format: $(SETUP)
	@$(VENV)/ruff format --check

lint: $(SETUP)
	@$(VENV)/ruff check

types: $(SETUP)
	@$(VENV)/mypy

layers: $(SETUP)
	@$(VENV)/lint-imports

# `sam build` runs these with ARTIFACTS_DIR set, the local stack with its own interpreter's version.
# PYTHON_VERSION is the template's Runtime; ARCHITECTURE its parameter of that name (scripts/deploy sets
# it), or `host`.
PYTHON_VERSION ?= 3.12
ARCHITECTURE ?= x86_64
BUILDER := $(or $(wildcard $(VENV)/python),$(PYTHON))

build-WorkerFunction build-CoordinatorFunction build-DispatchFunction build-DecodeFunction build-EncodeFunction: build-%:
	@$(BUILDER) scripts/build_function.py $* "$(ARTIFACTS_DIR)" --python $(PYTHON_VERSION) --architecture $(ARCHITECTURE)
