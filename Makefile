# Every target sets up what it needs, on a machine with python3 and make only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the main job needs, and what the tests need beyond that.
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
BROWSER := $(VENV)/.browser
POSTGRES := $(VENV)/.postgres
WARM := $(VENV)/.warm
DEVELOPING := $(VENV)/.developing
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: reproduce test lint check newest soak bench clean

reproduce: $(READY)
	$(BIN)/restive reproduce

test: $(DEVELOPING)
	$(BIN)/pytest -n 2

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests also build the documentation, strictly, and execute what it shows.
check: lint test

# On the newest Python beside this one, with the newest releases: first steps, to the same digits.
newest: $(DEVELOPING)
	$(BIN)/python tests/newest.py

# The long versions of the tests that kill runs, attack folders and break inputs, and of `newest` on
# every Python: about half an hour.
soak: $(DEVELOPING)
	$(BIN)/python tests/newest.py --whole
	RESTIVE_FUZZ=100000 RESTIVE_KILLS=100 RESTIVE_ATTACKS=100 RESTIVE_LIVE_KILLS=85 RESTIVE_SERVE_FUZZ=100 \
		RESTIVE_ALARM_YEARS=400 RESTIVE_SYSTEMS=12 RESTIVE_LIVE_FLIPS=400 RESTIVE_TURNS=20 \
		RESTIVE_POSTGRES_KILLS=210 RESTIVE_GYM_STEPS=1000000 RESTIVE_RIDGES=1 $(BIN)/pytest -n 2 \
		tests/test_fuzz.py tests/test_attacks.py tests/test_executors.py tests/test_live_kills.py \
		tests/test_serve_fuzz.py tests/test_live_alarms.py tests/test_best_index.py \
		tests/test_live_postgres.py tests/test_gym.py tests/test_live_files.py tests/test_live_turns.py tests/test_ridges.py \
		-k "broken or attacked or killed_again or serve_fuzz or false_alarms or what_is_stored or damaged or turns or never_raise or tenth or noticed"
	RESTIVE_PLAIN_NUMBA=1 NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/checked PYTHONPATH=tests \
		$(BIN)/python tests/snapshot_attack.py 20000

bench: $(DEVELOPING)
	$(BIN)/python -m benchmarks

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[plot]'
	touch $@

$(READY): $(INSTALLED)
	$(BIN)/restive warm-up plans regret
	touch $@

# With make's -j, tools are installed and code is checked while the kernels compile.
$(DEVELOPING): $(TOOLS) $(WARM) $(BROWSER) $(POSTGRES)
	touch $@

$(TOOLS): $(INSTALLED)
	$(PIP) -e '.[dev]'
	touch $@

# From the source folder, since restive is installed anew with its tools meanwhile.
$(WARM): $(INSTALLED)
	PYTHONPATH=src $(BIN)/python -m restive warm-up
	touch $@

# Pages are tested in a browser, which is installed where that is allowed; elsewhere those tests are left out.
$(BROWSER): $(INSTALLED)
	command -v chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 \
		|| echo "Chromium cannot be installed here: the tests of pages in a browser are left out"
	touch $@

# Agents are tested in a real PostgreSQL too, likewise; after the browser, since apt works alone.
$(POSTGRES): $(BROWSER)
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
		|| { apt-get update && apt-get install -y --no-install-recommends postgresql; } >/dev/null 2>&1 \
		|| echo "PostgreSQL cannot be installed here: the tests of agents in its databases are left out"
	touch $@

clean:
	rm -rf $(VENV) build dist site reproduction reproduction-quick .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
