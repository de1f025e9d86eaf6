# make setup   the environment, in .venv, from requirements.lock (made when missing, refreshed when stale)
# make audit   the audits named in config.yaml; another: make audit RUN=digits-generated
# make test    every test that needs nothing else
# make test-slurm  the tests on a real SLURM, which they start; Debian's packages and root, or they are skipped
# make test-faults  damaged files, full disks, kills; make torture: ten times as much of it
# make bench   speed and memory side by side, into benchmarks/results.json
# make lint    format and style, as CI checks them
# make lock    new versions into requirements.lock, requirements.hashes and envs/ (for maintainers)

VENV ?= .venv
PYTHON ?= python3
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
# Options for Snakemake or pytest: make audit ARGS=--dry-run
ARGS ?=
RUN ?=

BIN = $(VENV)/bin
INSTALLED = $(VENV)/installed.lock

.PHONY: setup audit test test-slurm test-faults torture bench lint format lock
.DEFAULT_GOAL := audit

setup:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@if ! "$(BIN)/python" -c '' 2>/dev/null; then $(PYTHON) -m venv --clear "$(VENV)"; fi
	@if ! cmp -s requirements.lock "$(INSTALLED)"; then \
	  echo "Installing $$(wc -l < requirements.lock) pinned packages into $(VENV) (a minute or two, once)"; \
	  "$(BIN)/python" -m pip install --disable-pip-version-check --requirement requirements.lock && \
	  cp requirements.lock "$(INSTALLED)"; \
	fi

audit: setup
	@"$(BIN)/snakemake" --cores $(CORES) --quiet rules host --rerun-incomplete $(if $(RUN),--config 'run=[$(RUN)]') $(ARGS)

test: setup
	@"$(BIN)/python" -m pytest $(ARGS)

test-slurm: setup
	@"$(BIN)/python" -m pytest tests/slurm $(ARGS)

test-faults: setup
	@"$(BIN)/python" -m pytest tests/faults $(ARGS)

torture: setup
	@"$(BIN)/python" -m pytest tests/faults --torture $(ARGS)

bench: setup
	@"$(BIN)/python" benchmarks/run.py $(ARGS)

lint: setup
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/ruff" check .
	@"$(BIN)/snakefmt" --check Snakefile rules
	@"$(BIN)/snakemake" --lint
	@"$(BIN)/python" tools/lock.py --check

format: setup
	@"$(BIN)/ruff" check --fix .
	@"$(BIN)/ruff" format .
	@"$(BIN)/snakefmt" Snakefile rules

lock: setup
	@"$(BIN)/python" tools/lock.py
