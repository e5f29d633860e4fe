# `make solve` and `make test` set up .venv from nothing (Python 3.11 or newer and pip) and are quick once it exists.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# The CPU build of torch is the small one; on a GPU machine install into an environment that has torch already.
TORCH ?= torch==2.13.0

.PHONY: solve test tests lint setup clean

$(VENV)/.ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile "$(TORCH)" -e ".[dev,prices,nvcc]"
# Byte code as pip would make it, on all cores; what is meant for another Python has none. Processes that run candidates
# write none: they would compile torch each time.
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null || true
	@touch $@

setup: $(VENV)/.ready

solve: setup
	$(BIN)/agent solve rms_norm_residual --device cpu --recorded rms_norm_residual_cpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# The linters run beside the tests; a failure of either fails the command.
test: setup
	+$(MAKE) --no-print-directory -j2 lint tests

# Three at a time even on a larger machine: compilers and timings inside of the tests use several cores themselves, and what
# is left to gain is the time in which a test waits. The byte code is for the processes that tests start, which write none.
tests: setup
	$(BIN)/python -m compileall -q agent problems prompts tools transcripts
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
