# Everything a newcomer runs. `make setup` makes .venv; the other targets call it.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
export PYTHONUNBUFFERED = 1
# The tests are 460 modules whose assertions are rewritten; where that is kept, each run begins ten seconds sooner.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup up demo cluster frontend check-frontend test check lint bench soak lock sbom audit clean help

help:
	@echo "make setup   the virtual environment, and Java where it can be installed"
	@echo "make up      the whole platform on this machine, until Ctrl-C"
	@echo "make demo    two live streams, joined; make demo CHECK=1 ends by itself"
	@echo "make cluster a Spark cluster of two workers and an object store on this machine, until Ctrl-C"
	@echo "make frontend builds the dashboard, as make up does"
	@echo "make test    all tests"
	@echo "make check   format, lint, types, contracts and the quick tests, in two minutes"
	@echo "make check-frontend   lint, types, unit tests and build of the dashboard"
	@echo "make soak    hours, in parts of at most 20 minutes: thousands of kills and seeds, 100,000 conditions, a platform whose parts die"
	@echo "make sbom    what the platform is made of, with hashes, in build/sbom.json"
	@echo "make audit   known vulnerabilities of it; asks advisories on the network"
	@echo "make bench   the benchmarks, with Spark's own join and Flink beside ours"

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh
	@touch $@

up: setup
	@sh scripts/frontend.sh || echo "up: the platform will run without its dashboard" >&2
	@$(BIN)/streamjoin up

demo: setup
	@$(BIN)/python -m demo $(if $(CHECK),--check)

# The stages are in tests/run.py; docs/testing.md says what each holds.
test: setup frontend
	@sh scripts/browser.sh
	@$(BIN)/python -m tests.run $(STAGES)

cluster: setup
	@$(BIN)/python -m tests.servers.laptop

frontend: setup
	@sh scripts/frontend.sh

check-frontend: setup
	@sh scripts/frontend.sh check

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	@$(BIN)/python -m tests.run quick

bench: setup
	$(BIN)/python -m benchmarks

soak: setup
	@$(BIN)/python -m tests.soak

sbom: setup
	@$(BIN)/python -m scripts.sbom build/sbom.json

audit: setup
	@$(BIN)/python -m scripts.audit

# Pins every package with its hash; the file names no host.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --all-extras --generate-hashes --no-header --no-emit-index-url \
	  --python-version 3.11 -o requirements.lock
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > scripts/uv.lock

clean:
	rm -rf .venv frontend/.node frontend/build .mypy_cache .ruff_cache .pytest_cache demo-data benchmarks/out
