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

.PHONY: reproduce test check soak bench clean

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

# The long versions of the tests that kill runs and break inputs: about half an hour.
soak: $(DEVELOPING) $(KERNELS_FRESH)
	RESTIVE_FUZZ=100000 RESTIVE_KILLS=100 $(BIN)/pytest -n 2 tests/test_fuzz.py tests/test_executors.py \
		-k "broken_input or killed_again"

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
