# Two commands: `make lab` opens the course, `make test` proves library and lessons.
# Both need Python 3.10 to 3.13 and make, and do their own set-up in .venv.

# PYTHON=/path/to/python3   the Python to use; otherwise the first that fits
# TORCH=system              use the torch that PYTHON has, and leave it as it is;
#                           TORCH=lock goes back to the locked one
# PIP_ARGS="..."            handed to pip, for example another index
# LAB_ARGS="..."            handed to JupyterLab, for example --no-browser --port=9000
# LESSON=path               the notebook that `make lab` opens
# SLICE=k/n                 of `make test-full`, the k-th of n parts
# PYTEST_ARGS="..."         handed to pytest, for example -k merge
# VENV=folder               where the environment is made
PYTHON ?=
TORCH ?=
PIP_ARGS ?=
LAB_ARGS ?=
LESSON ?= notebooks/00_ranks_and_messages.ipynb
SLICE ?=
PYTEST_ARGS ?=
VENV ?= .venv

BIN := $(VENV)/bin
REPORTS := build/reports
# JupyterLab refuses to run as root, which is who one is inside most containers.
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)

.PHONY: help env lab test test-full format check-format check-lint check-types \
        test-library test-notebooks notebooks totals lock clean
.NOTPARALLEL:

help:
	@echo "make lab        open the course in JupyterLab"
	@echo "make test       format, lint, types, library tests and notebooks"
	@echo "make test-full  the second tier of tests; SLICE=k/n runs one part of it"
	@echo "make format     rewrite the sources in the project's format"
	@echo "make notebooks  execute the lessons, and write all that is generated"
	@echo "make lock       resolve the dependencies again (UPGRADE=1 for the newest)"
	@echo "make clean      remove what was built, the environment included"
	@echo "Variables are described at the top of the Makefile."

env:
	@python=$$(sh tools/find-python.sh '$(VENV)' '$(PYTHON)' '$(TORCH)') && \
	"$$python" tools/setup_env.py --venv='$(VENV)' --torch='$(TORCH)' --pip-args='$(PIP_ARGS)'

lab: env
	$(BIN)/jupyter lab $(LESSON) --ServerApp.root_dir=. $(AS_ROOT) \
	--LabApp.news_url=None --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	$(LAB_ARGS)

test: check-format check-lint check-types test-library test-notebooks totals

check-format: env
	$(BIN)/ruff format --check

check-lint: env
	$(BIN)/ruff check

check-types: env
	$(BIN)/mypy

test-library: env
	@mkdir -p $(REPORTS) && rm -f $(REPORTS)/*.xml
	$(BIN)/python tools/test_library.py $(REPORTS) $(PYTEST_ARGS)

test-notebooks: env
	@mkdir -p $(REPORTS)
	$(BIN)/pytest --nbval --nbval-current-env --nbval-cell-timeout=90 \
	--junitxml=$(REPORTS)/notebooks.xml notebooks

test-full: env
	@mkdir -p $(REPORTS)
	$(BIN)/pytest --full -m slow $(if $(SLICE),--slice=$(SLICE)) \
	--junitxml=$(REPORTS)/second-tier.xml $(PYTEST_ARGS)

totals:
	@$(BIN)/python tools/totals.py $(REPORTS)

format: env
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

notebooks: env
	$(BIN)/python tools/run_notebooks.py notebooks/*.ipynb
	$(BIN)/python -m tools.exercises
	$(BIN)/python -m tools.course
	$(BIN)/python -m tools.error_pages
	$(BIN)/python -m tools.faults
	$(BIN)/python -m tools.accuracy
	$(BIN)/python -m tools.speed
	$(BIN)/python -m tools.readme

lock: env
	$(BIN)/python -m pip install --quiet $(PIP_ARGS) uv
	$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
