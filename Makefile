# Everything sets itself up: `make demo` and `make test` need only Python 3.11 or newer, git and make.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help install research demo versions check test suite kernels lint bench soak fuzz systemd package image clean

VENV ?= .venv
BIN := $(VENV)/bin
# The first of these that is Python 3.11 or newer; the pinned versions are tested with 3.11, and the demo runs with 3.12 and 3.13.
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)
# Where PyTorch's CPU build is: a plain install on Linux would pull several gigabytes of CUDA packages. TORCH_INDEX= takes the plain one.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# Without compiling whole packages, which takes a minute: Python compiles the modules that it imports. It must be allowed to keep them, because
# a process that compiles all its modules again takes a second longer; images for containers often forbid it.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip --disable-pip-version-check
PIP_INSTALL := $(PIP) install --quiet --no-compile --constraint constraints.txt
# The tests keep compiled kernels here, for all their processes and for the next run.
check test soak versions: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba
# As many processes as processors run anyway; each would start threads, and wait for them, when it imports NumPy.
check test soak versions: export OPENBLAS_NUM_THREADS := 1
RESOLUTION ?= lowest-direct
UV_INSTALL := .cache/versions/bin/uv pip install --quiet --python .cache/versions
# Old versions may warn, the newest must not.
WARNINGS = $(if $(filter highest,$(RESOLUTION)),error,ignore)
# Leaves out the tests that take long.
QUICK := -m "not (browser or processes or slow)"
# The rooms whose tests need only what the product and the group `quick` install.
ROOMS := $(addprefix tests/,worker leaderboard/exchange leaderboard/git leaderboard/ranking leaderboard/report \
	scoring/inputs scoring/kernel scoring/memory scoring/neuco_bench scoring/tasks)
# Where `make package` installs the wheel that it has built, and what `make image` calls the image.
INSTALLED := build/installed
IMAGE ?= neuco-worker

help:  ## Show this help.
	@echo "neuco-worker: hidden-task embedding challenges on EvalAI"
	@echo
	@sed -nE 's/^([a-z]+):[^#]*## (.*)$$/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

install: $(VENV)/.compiled  ## Make .venv with the pinned, tested versions, and compile the kernels.

research: install $(VENV)/.installed-research  ## Add what only researchers need: PyTorch, scikit-learn, plots.

demo: install  ## Watch a whole challenge on this machine: submissions, scores, two leaderboards (about a minute).
	@$(BIN)/neuco-worker demo

versions:  ## Run demo and quick tests with the oldest allowed versions of the dependencies, or with the newest (RESOLUTION=highest).
	@$(PYTHON) -m venv --clear .cache/versions
	@.cache/versions/bin/python -m pip install --quiet uv
	@$(UV_INSTALL) --resolution $(RESOLUTION) '.[postgres]'
	@.cache/versions/bin/uv pip freeze --quiet --python .cache/versions | grep -v '^neuco-worker' >.cache/versions/chosen.txt
	@$(UV_INSTALL) --constraint .cache/versions/chosen.txt --group quick
	@PYTHONWARNINGS=$(WARNINGS) .cache/versions/bin/neuco-worker demo
	@.cache/versions/bin/python -m pytest -n 4 $(QUICK) -W $(WARNINGS) $(ROOMS)

check: lint $(VENV)/.collected  ## Linters, types, and the tests that start no process: for every change.
	@$(BIN)/python -m pytest -n 4 $(QUICK)

test: $(VENV)/.installed  ## Check everything: linters, types, and the whole test suite.
	@tests/setup.sh
	@$(MAKE) -j 2 kernels $(VENV)/.installed-test
	@$(MAKE) -j 2 suite lint

suite: $(VENV)/.collected
	@$(BIN)/python -m pytest -n 5 --dist loadgroup

kernels:
	@$(BIN)/neuco-worker compile

lint: $(VENV)/.installed-lint  ## Only linters and types.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/.installed-test  ## Measure the figures of docs/performance.md, on this machine.
	@for file in $(sort $(wildcard tests/benchmarks/bench_*.py)); do \
		echo "== $$(basename "$$file" .py)"; $(BIN)/python -m "tests.benchmarks.$$(basename "$$file" .py)"; done

soak: $(VENV)/.installed-test  ## 2,000 submissions of 40 teams through the sandbox, with chaos (long).
	@$(BIN)/python -m tests.soak

fuzz: $(VENV)/.installed-test  ## Feed hostile bytes to every reader, guided by coverage (FUZZ_SECONDS=90 in all, FUZZ_SEED=N).
	@$(PIP_INSTALL) atheris
	@$(BIN)/python -m tests.fuzz

systemd: $(VENV)/.installed-test  ## Run the service under a real systemd, in a container (as root; long).
	@$(BIN)/python -m tests.systemd

package: $(VENV)/.installed  ## Build sdist and wheel, check them, and run the demo from the wheel in an environment of its own.
	@$(PIP_INSTALL) --group release
	@rm -rf dist $(INSTALLED)
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python -m venv $(INSTALLED)
	@$(INSTALLED)/bin/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	@$(INSTALLED)/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	@cd $(INSTALLED) && bin/neuco-worker --help && bin/neuco-worker demo

image:  ## Build the container image, and run the demo in it (needs Docker).
	@IMAGE=$(IMAGE) tests/container

clean:  ## Remove .venv, caches and the demo's folder.
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist demo-challenge
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt $(VENV)/bin/python
	@echo "Installing the pinned versions into $(VENV) (the first time: a minute or two) ..."
	@$(PIP_INSTALL) --upgrade pip hatchling hatch-fancy-pypi-readme editables
	@$(PIP_INSTALL) --no-build-isolation --editable .
	@touch $@

$(VENV)/.compiled: $(VENV)/.installed
	@$(BIN)/neuco-worker compile
	@touch $@

$(VENV)/.installed-torch: $(VENV)/.installed
	@echo "Installing PyTorch, scikit-learn and plots (the first time: a minute or two) ..."
	@if [ -n "$(TORCH_INDEX)" ]; then \
		$(PIP_INSTALL) --no-deps --retries 1 --timeout 30 --index-url "$(TORCH_INDEX)" "$$(grep ^torch== constraints.txt)" \
		|| echo "$(TORCH_INDEX) does not provide torch; using the default index."; fi
	@touch $@

$(VENV)/.installed-research: $(VENV)/.installed-torch
	@$(PIP_INSTALL) --no-build-isolation --editable '.[research]'
	@touch $@

$(VENV)/.installed-lint: $(VENV)/.installed
	@$(PIP_INSTALL) --group lint
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed-torch
	@$(PIP_INSTALL) --no-build-isolation --editable '.[research]' --group test
	@touch $@ $(VENV)/.installed-lint

# The tests' processes would compile hundreds of modules on their first import, each for itself.
$(VENV)/.collected: $(VENV)/.installed-test
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null || true  # the tests will say what is wrong
	@touch $@

# Debian and Ubuntu ship Python without ensurepip. With permission to install packages, its package is installed here.
$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "No Python 3.11 or newer was found. Install one, or name it: make PYTHON=/path/to/python" >&2; exit 2; fi
	@if ! "$(PYTHON)" -c 'import ensurepip' 2>/dev/null; then \
		package=$$("$(PYTHON)" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if [ "$$(id -u)" = 0 ]; then apt="apt-get"; elif sudo -n true 2>/dev/null; then apt="sudo -n apt-get"; \
		else echo "$(PYTHON) cannot make virtual environments. Install its package: sudo apt-get install $$package" >&2; exit 2; fi; \
		echo "Installing $$package ..."; \
		$$apt update -qq && DEBIAN_FRONTEND=noninteractive $$apt install -y -qq "$$package" >/dev/null; fi
	@"$(PYTHON)" -m venv "$(VENV)" || { rm -rf "$(VENV)"; exit 1; }
