# The ways in for people and for CI. Every target sets up .venv by itself and again only when
# requirements.lock or pyproject.toml changed.

VENV := .venv
BIN := $(VENV)/bin
# Three test processes more than processors, as many tests wait for processes and containers; at most five, as more only
# fight over memory on the machines this is tested on.
PYTEST_WORKERS ?= $(shell expr $$(nproc) + 3)
ARGS ?=

# Compiled modules are kept: the tests start hundreds of processes, each of which would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-setup test-clients test-bare soak check bench fuzz snapshots docs pictures format lock clean environment

run: environment  ## open the console on the demo; again: resume it
	@$(BIN)/mlebench-console demo $(ARGS)

test: environment  ## run all tests that this machine can run (ARGS='-k name' for some)
	@$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --maxprocesses 5 --dist loadfile $(ARGS)

test-setup:  ## as root: install and start what all tests need
	@bash tools/test-setup.sh

test-clients: environment  ## install the official clients of model providers, for the tests of the model gateway
	@sh tools/test-clients.sh $(BIN)/python

test-bare:  ## as root: run 'make test' and 'make run' as a user of a bare machine would
	@bash tools/test-bare.sh $(ARGS)

soak: environment  ## play histories of faults on real engines (ARGS="--minutes 30 --seed 7")
	@$(BIN)/python -m tests.soak $(ARGS)

check: environment  ## format, lint, types, import directions
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: environment  ## measure what the README promises, as ratios within one run
	@$(BIN)/python -m benchmarks $(ARGS)

fuzz: environment  ## compare graders with a checkout of MLE-bench (ARGS="--against PATH --seed 7 --files 200")
	@$(BIN)/python -m tools.fuzz $(ARGS)

snapshots: environment  ## take the screens' snapshots anew (look at them before you commit)
	@$(BIN)/python -m pytest -q tests/console --snapshot-update -k snapshot $(ARGS)

docs: environment  ## write docs/commands.md and docs/keys.md anew
	@$(BIN)/python -m tools.reference

pictures: environment  ## draw the README's pictures from the real app
	@$(BIN)/python -m tools.pictures $(ARGS)

format: environment  ## let ruff format and mend what it can
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

lock:  ## resolve requirements.lock anew (needs uv)
	@sh tools/lock.sh

clean:  ## remove what was built here, .venv included
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

environment:
	@sh tools/environment.sh $(VENV)
