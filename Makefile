# Everything a newcomer runs. `make setup` makes .venv; the other targets call it.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
export PYTHONUNBUFFERED = 1
QUICK := -n 2 --dist worksteal -m "not spark and not services and not slow"

.PHONY: setup demo test check lint bench soak lock clean help

help:
	@echo "make setup   the virtual environment, and Java where it can be installed"
	@echo "make demo    two live streams, joined; make demo CHECK=1 ends by itself"
	@echo "make test    all tests"
	@echo "make check   format, lint, types, contracts, unit and conformance tests (under two minutes)"
	@echo "make soak    200 kills of a driver that writes into a store, while readers look"
	@echo "make bench   the benchmarks, with Spark's own join and Flink beside ours"

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh
	@touch $@

demo: setup
	@$(BIN)/python -m demo $(if $(CHECK),--check)

# The quick tests side by side, then those that need the machine to themselves.
test: setup
	$(BIN)/python -m pytest -q $(QUICK)
	$(BIN)/python -m pytest -m "spark or services or slow"

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(BIN)/python -m pytest -q $(QUICK)

bench: setup
	$(BIN)/python -m benchmarks

soak: setup
	$(BIN)/python -m tests.conformance.stores.soak --kills 200 --store sqlite

# Pins every package with its hash; the file names no host.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --all-extras --generate-hashes --no-header --no-emit-index-url \
	  --python-version 3.11 -o requirements.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache demo-data benchmarks/out
