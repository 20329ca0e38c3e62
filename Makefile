# One door: `make demo`, `make test`. Both set up a virtual environment in the checkout by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types format clean help

help:
	@echo "make demo    a survey with few labels, end to end, into demo-output/"
	@echo "make test    all tests"
	@echo "make lint    ruff"
	@echo "make types   mypy"
	@echo "make format  ruff format and the fixes ruff is sure of"

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "treewright needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py demo-output

# Two workers, as solvers use one thread each in the tests. Bytecode is kept whatever the environment says: without it
# each worker, and each of the many processes that tests start, compiles all modules again.
test: $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo-output build dist
	find src -name '*.nb[ic]' -delete
