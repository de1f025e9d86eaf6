# make setup   the environment, in .venv, from requirements.lock (made when missing, refreshed when stale);
#              on Linux TORCH_BUILD=cpu or cuda chooses PyTorch's build
# make audit   the demo; another: make audit CONFIG=configs/digits-generated.yaml, of one file RUN=name;
#              of your own files: make audit MODEL=net.onnx DATA=images/, options: .venv/bin/gfscore audit --help
# make audit ARGS=exports  LaTeX tables, model cards, Croissant, a research crate; ARGS=inputs: what needs a network
# make gate    stop unless an audit passes: make gate AUDIT=digits; exit codes: .venv/bin/gfscore gate --help
# make bundle  an audit as a folder to hand on, results/bundles/NAME: make bundle AUDIT=digits
# make verify  check such a folder: make verify AUDIT=digits
# make test    what takes minutes: units, steps, pages; of one part, all of it: make test ARGS=tests/gfscore/audit
# make test-all  every test: the slow ones, whole runs of the workflow, test-faults and test-slurm
# make test-faults  damaged files, full disks, kills; make torture: ten times as much of it
# make test-slurm  the tests on a real SLURM, which they start; Debian's packages and root, or they are skipped
# make validators  foreign readers of what is exported, for its tests, in .venv-validators
# make bench   speed and memory side by side, into benchmarks/results.json
# make lint    format, style, layers and types, as CI checks them; make format: the first two mended
# make release  wheel and source distribution in dist/, each tried in an empty environment (for maintainers)
# make help    this list
# make lock    the locks and envs/ from pyproject.toml; ARGS=--upgrade: at the newest versions (for maintainers)

VENV ?= .venv
PYTHON ?= python3
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
# Options and targets for Snakemake, options for pytest or tools/lock.py: make audit ARGS=--dry-run
ARGS ?=
# The file of an audit, in place of config.yaml; names of its audits, in place of all
CONFIG ?=
RUN ?=
# Name of the audit for gate, bundle and verify, which read it from their environment
AUDIT ?=
# Files of your own for audit, and options of gfscore audit; AUDIT names it
OWN = MODEL DATA ARCHITECTURE PREPROCESSING LABELS ARRAYS VALUE_RANGE IMAGE_FOLDER ORIENTATION NORM EPS SIZE \
	MINUTES OUTPUT PROBABILITIES DEVICE TRUST_CODE FORCE
MODEL =
export AUDIT $(OWN)
# A misspelt option would be left out, and one without MODEL audit the demo; those of a make around this one are its own.
OPTIONS = VENV PYTHON CORES ARGS CONFIG RUN AUDIT TORCH_BUILD $(OWN)
COMMAND_LINE = $(foreach name,$(filter-out .% -%,$(.VARIABLES)),$(if $(filter command,$(origin $(name))),$(name)))
GIVEN = $(if $(filter 0,$(MAKELEVEL)),$(COMMAND_LINE))
ifneq ($(filter-out $(OPTIONS),$(GIVEN)),)
$(error no such option: $(filter-out $(OPTIONS),$(GIVEN)); there are $(sort $(OPTIONS)))
endif
ifeq ($(MODEL),)
ifneq ($(filter-out MODEL,$(filter $(OWN),$(GIVEN))),)
$(error $(filter-out MODEL,$(filter $(OWN),$(GIVEN))) without MODEL; name one: make audit MODEL=net.onnx DATA=images/)
endif
endif
# Else every process compiles the modules that it imports, as the environment is installed without compiling all.
unexport PYTHONDONTWRITEBYTECODE

BIN = $(VENV)/bin

.PHONY: help setup audit gate bundle verify validators test test-all test-slurm test-faults torture bench lint format lock release
.DEFAULT_GOAL := audit

help:
	@sed -n 's/^# //p' Makefile | sed '/^Options/,$$d'

setup:
	@if ! "$(BIN)/python" -c '' 2>/dev/null; then \
	  $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "error: $(PYTHON) is not 3.11 to 3.13; name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }; \
	  echo "A new environment in $(VENV)"; $(PYTHON) -m venv --clear "$(VENV)"; fi
	@"$(BIN)/python" -I tools/install.py

audit: setup
ifeq ($(MODEL),)
	@PYTHONPATH=workflow_scripts "$(BIN)/python" -P -m gfscore.workflow.running \
	  $(if $(CONFIG),--configfile "$(CONFIG)") $(if $(RUN),--config 'run=[$(RUN)]') --cores $(CORES) $(ARGS)
else
	@$(GFSCORE) audit --of-make --cores $(CORES) $(ARGS)
endif

# As .venv/bin/gfscore, which an environment elsewhere does not have.
GFSCORE = PYTHONPATH=workflow_scripts "$(BIN)/python" -P -m gfscore.workflow.command

gate: setup
	@$(GFSCORE) gate "$${AUDIT:?name one: make gate AUDIT=digits}"

bundle: setup
	@$(GFSCORE) bundle "$${AUDIT:?name one: make bundle AUDIT=digits}"

verify: setup
	@$(GFSCORE) verify "results/bundles/$${AUDIT:?name one: make verify AUDIT=digits}"

# Files side by side, the longest first, as tests/conftest.py sorts them.
PYTEST = "$(BIN)/python" -m pytest --numprocesses $(CORES) --dist loadfile --no-loadscope-reorder

# The lock of its own keeps them out of a user's environment; uv, of that environment, is quick.
validators: setup
	@"$(VENV)-validators/bin/python" -c '' 2>/dev/null || "$(BIN)/python" -m venv --clear "$(VENV)-validators"
	@PATH="$(abspath $(BIN)):$$PATH" "$(VENV)-validators/bin/python" -I tools/install.py requirements.validators.lock

test: setup validators
	@$(PYTEST) $(or $(ARGS),--quick)

test-all: setup validators
	@$(PYTEST) $(ARGS)
	@$(MAKE) test-faults test-slurm

test-slurm: setup
	@"$(BIN)/python" -m pytest tests/slurm $(ARGS)

test-faults: setup
	@$(PYTEST) tests/faults $(ARGS)

torture: setup
	@"$(BIN)/python" -m pytest tests/faults --torture $(ARGS)

bench: setup
	@"$(BIN)/python" benchmarks/run.py $(ARGS)

lint: setup
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/ruff" check .
	@"$(BIN)/mypy"
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

release: setup
	@"$(BIN)/python" tools/release.py
