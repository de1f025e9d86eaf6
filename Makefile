# make setup   the environment, in .venv, from requirements.lock (made when missing, refreshed when stale);
#              on Linux TORCH_BUILD=cpu or cuda chooses PyTorch's build
# make audit   the demo; another: make audit CONFIG=configs/digits-generated.yaml, of one file RUN=name
# make test    every test that needs nothing else
# make test-slurm  the tests on a real SLURM, which they start; Debian's packages and root, or they are skipped
# make test-faults  damaged files, full disks, kills; make torture: ten times as much of it
# make bench   speed and memory side by side, into benchmarks/results.json
# make lint    format and style, as CI checks them
# make lock    requirements.lock and envs/ from pyproject.toml; ARGS=--upgrade: at the newest versions (for maintainers)

VENV ?= .venv
PYTHON ?= python3
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
# Options for Snakemake, pytest or tools/lock.py: make audit ARGS=--dry-run
ARGS ?=
# The file of an audit, in place of config.yaml; names of its audits, in place of all
CONFIG ?=
RUN ?=

BIN = $(VENV)/bin

.PHONY: setup audit test test-slurm test-faults torture bench lint format lock
.DEFAULT_GOAL := audit

setup:
	@if ! "$(BIN)/python" -c '' 2>/dev/null; then \
	  $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "error: $(PYTHON) is not 3.11 to 3.13; name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }; \
	  $(PYTHON) -m venv --clear "$(VENV)"; fi
	@"$(BIN)/python" -I tools/install.py

audit: setup
	@"$(BIN)/snakemake" --cores $(CORES) --quiet rules host --rerun-incomplete \
	  $(if $(CONFIG),--configfile "$(CONFIG)") $(if $(RUN),--config 'run=[$(RUN)]') $(ARGS)

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
	@PYTHONPATH=workflow_scripts "$(BIN)/lint-imports" --no-cache
	@"$(BIN)/python" tools/lock.py --check
	@"$(BIN)/python" tools/write_config_schema.py --check

format: setup
	@"$(BIN)/ruff" check --fix .
	@"$(BIN)/ruff" format .
	@"$(BIN)/snakefmt" Snakefile rules

lock: setup
	@"$(BIN)/python" tools/lock.py $(ARGS)
