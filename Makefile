# One door: `make demo`, `make test`. Both set up a virtual environment in the checkout by themselves, or in a copy of it
# where the checkout cannot be written to.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BUILT := $(VENV)/.built
LOOPS := $(shell find src -name '*.pyx' -o -name '*.pxd')

.PHONY: demo test lint types format clean help

help:
	@echo "make demo    a survey with few labels, end to end, into demo-output/"
	@echo "make test    all tests"
	@echo "make lint    ruff"
	@echo "make types   mypy"
	@echo "make format  ruff format and the fixes ruff is sure of"

$(STAMP): pyproject.toml $(wildcard setup.py)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "treewright needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(BUILT)

# The installation compiles all loops; those that are changed later are compiled where they are.
$(BUILT): $(STAMP) $(LOOPS)
	@test -e $@ && test -z "$$(find src -name '*.p[yx][xd]' -newer $@)" || \
	  $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

ifneq ($(shell test -w . && echo yes),yes)
# A private folder named by user and checkout. One of that name that is another user's is not used.
COPY := $(shell echo "$${TMPDIR:-/tmp}/treewright-$$(id -u)-$$(pwd -P | cksum | cut -d ' ' -f 1)")
COPIED := $(filter-out build dist results demo-output,$(wildcard * .ci))

demo test lint types:
	@echo "This checkout cannot be written to: a copy is used, with .venv/ and demo-output/ in it: $(COPY)"
	@mkdir -m 700 "$(COPY)" 2>/dev/null || { test -O "$(COPY)" && test ! -L "$(COPY)"; } || \
	  { echo "$(COPY) cannot be made; set TMPDIR to a folder of your own"; exit 1; }
	@tar -cf - --exclude='*.so' $(COPIED) | tar -xpf - -C "$(COPY)" && cd "$(COPY)" && chmod -R u+w $(COPIED) && \
	  find $(COPIED) -name '*.py' -o -name '*.p[yx][xdi]' | while read -r f; do test -e "$(CURDIR)/$$f" || rm "$$f"; done
	@$(MAKE) --no-print-directory -C "$(COPY)" $@
else
demo: $(BUILT)
	$(BIN)/python examples/demo.py demo-output

# Two workers, as solvers use one thread each in the tests. Bytecode is kept whatever the environment says: without it
# each worker, and each of the many processes that tests start, compiles all modules again.
test: $(BUILT)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

endif

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo-output build dist
	find src -name '*.so' -delete -o -name '*.nb[ic]' -delete
