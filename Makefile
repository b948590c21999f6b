# Every target sets up what it needs in .venv: python3 >= 3.11 and make are enough to begin with.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS ?=
SUITES ?=
BENCH_ARGS ?=
ROUTES ?= 1 2
BOUNDS ?= tests/kernels tests/infer tests/model/structured tests/conformance tests/query/test_session.py
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-slow test-system test-routes test-bounds check format bench docs notebooks dist wheel clean distclean

help:
	@echo 'make demo       a show: learning and inference, tables on the terminal, a page out/demo.html'
	@echo 'make test       the fast test suite        make test-slow   the slow one'
	@echo 'make test-routes  small models on the routes of large ones: ROUTES="1 2 3"'
	@echo 'make test-bounds  the kernels with checked indices and the smallest tiles'
	@echo 'make test-system  the tests of files, command line and models with /usr/bin/python3'
	@echo 'make check      lint, format and types     make format      format and fix'
	@echo 'make bench      besag beside its peers: SUITES="tree" BENCH_ARGS="--repeat 9"'
	@echo 'make docs       the site, in out/site       make notebooks   the tutorials, in out/notebooks'
	@echo 'make dist       wheel and sdist, in dist'
	@echo 'make wheel      a wheel in dist/ with compiled kernels, for this Python and numba'
	@echo 'make clean      remove outputs and caches  make distclean   and the environments'

demo: $(STAMP)
	@$(BIN)/besag demo --out out

test: $(STAMP)
	@$(BIN)/python -m pytest -q -n 2 -m "not slow" $(TESTS)

test-slow: $(STAMP)
	@$(BIN)/python -m pytest -q -m slow || { code=$$?; test $$code -eq 5 && echo 'no slow tests'; }

test-routes: $(STAMP)
	@for seed in $(ROUTES); do \
	    $(BIN)/python -m pytest -q -n 2 -m "not slow" --routes $$seed tests/conformance || exit 1; done

# numba's cache does not know whether indices are checked, hence one of its own.
test-bounds: $(STAMP)
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/checked-kernels $(BIN)/python -m pytest -q -n 2 -m "not slow" \
	    --small-kernels $(BOUNDS)

# What reads and writes text depends on the interpreter most: distributions ship older ones than this project is made with.
test-system:
	@$(MAKE) --no-print-directory VENV=.venv-system PYTHON=/usr/bin/python3 \
	    TESTS="$(foreach part,io cli model,tests/$(part) src/besag/$(part))" test

check: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo 'not formatted: run "make format"'; exit 1; }
	@$(BIN)/mypy

format: $(STAMP)
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

# Kernels for this machine: those that come compiled are for a baseline processor.
bench: $(STAMP)
	@$(BIN)/besag warmup
	@$(BIN)/python -m benchmarks run $(SUITES) $(BENCH_ARGS)

# Sphinx stops at the first page that is not right: -W makes an error of a warning, -n of a link that leads nowhere.
docs: $(VENV)/.docs-installed
	@$(BIN)/python -m sphinx -q -W --keep-going -n -j auto -b html -c docs/site -d out/doctrees . out/site
	@echo 'the site: out/site/index.html'

notebooks: $(STAMP)
	@$(BIN)/python docs/site/notebooks.py out/notebooks
	@echo 'the tutorials as notebooks: out/notebooks'

dist: $(STAMP)
	@$(BIN)/python -m hatchling build

wheel: $(STAMP)
	@BESAG_SHIP=1 $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .

clean:
	@rm -rf out build dist benchmarks/results docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.docs-installed: $(STAMP) docs/site/requirements.txt
	@echo 'installing what makes the site into $(VENV) ...'
	@$(BIN)/python -m pip install -qq -c constraints.txt -r docs/site/requirements.txt
	@touch $@

distclean: clean
	@rm -rf $(VENV) .venv-system .venvs src/besag/_compiled

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'besag needs Python 3.11 or newer: make PYTHON=/path/to/python3 ...'; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { $(create_venv); }
	@echo 'installing besag and its pinned dependencies into $(VENV) ...'
	@$(BIN)/python -m pip install -qq -c constraints.txt hatchling editables
	@$(BIN)/python -m pip install -qq -c constraints.txt --no-build-isolation -e '.[all,dev]'
	@$(if $(filter .venv,$(VENV)),$(compile_kernels))
	@touch $@

# An environment of another Python compiles what it needs when it needs it.
define compile_kernels
echo 'compiling the kernels of usual questions, once: a minute or two ...'; \
$(BIN)/besag warmup --ship >/dev/null || echo 'not all were compiled: the first question that needs one compiles it'
endef

# Debian ships python3 without ensurepip: as root fetch it, else say what to do.
define create_venv
echo 'making $(VENV) ...'; \
$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
    if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
        echo 'installing python3-venv ...'; \
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y python3-venv >/dev/null; \
    fi; \
    $(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1; \
} || { echo '$(PYTHON) -m venv fails: install python3-venv (as root: apt-get install python3-venv), then again'; exit 1; }
endef
