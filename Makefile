# Every target sets up what it needs, on a machine with python3 and make only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the main job needs, and what the tests need beyond that.
READY := $(VENV)/.ready
DEVELOPING := $(VENV)/.developing
# Numba's cache does not see a change in a kernel that another file's kernel calls.
KERNELS_FRESH := $(VENV)/.kernels
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: reproduce test check bench clean

reproduce: $(READY) $(KERNELS_FRESH)
	$(BIN)/restive reproduce

test: $(DEVELOPING) $(KERNELS_FRESH)
	$(BIN)/pytest -n 2

check: $(DEVELOPING) $(KERNELS_FRESH)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/pytest -n 2

bench: $(DEVELOPING) $(KERNELS_FRESH)
	$(BIN)/python -m benchmarks

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[plot]'
	touch $@

$(DEVELOPING): $(READY)
	$(PIP) -e '.[dev]'
	touch $@

$(KERNELS_FRESH): $(wildcard src/restive/kernels/*.py src/restive/kernels/*/*.py) $(READY)
	find src/restive/kernels -name "*.nb[ic]" -delete
	touch $@

clean:
	rm -rf $(VENV) build dist site reproduction reproduction-quick .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
