# `make solve` and `make test` set up .venv from nothing (Python 3.11 or newer and pip) and are quick once it exists.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# The CPU build of torch is the small one; on a GPU machine install into an environment that has torch already.
TORCH ?= torch==2.13.0

.PHONY: solve test lint setup clean

$(VENV)/.ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check "$(TORCH)"
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[dev,prices,nvcc]"
	@touch $@

setup: $(VENV)/.ready

solve: setup
	$(BIN)/agent solve rms_norm_residual --device cpu --recorded rms_norm_residual_cpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# Two at a time even on a larger machine: half of a test's time is spent waiting for processes to start, and compilers and
# timings inside of the tests use several cores themselves.
test: lint
	$(BIN)/pytest -n 2 --dist loadgroup

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
