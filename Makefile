# Every target makes what it needs, the virtual environment included. `make` lists them.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTHONS ?= 3.11 3.12 3.13 3.14 3.15
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
HALF   = $(shell expr $(JOBS) / 2 '|' 1)
WORKERS = $(patsubst 1,0,$(JOBS))# one needs nobody who hands out its tests
PART   ?= today/48
MODES  ?= today/24
ROWS   ?= today/5
TABLES ?= today/2
DEVICES ?= today/48
SEEDS  ?= 0
REACH  ?= --cov=compiler/frontend --cov-report=term

# Tests start hundreds of processes, which read compiled modules rather than compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test beside test-all dist pytest bridges generated sample targets devices refused lit lint types format docs pictures screens demo demo-aot demo-gpu bench clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

test: lint $(VENV)/.docs  ## Everything that CI runs: lint, docs, types, lit tests, pytest
	$(MAKE) -j2 pytest beside

# What has one process, or begins with one, leaves no core idle beside the many tests of pytest: it has half as
# many processes as they have, and ends before them. (To count lines takes a third longer.)
beside:
	$(MAKE) types lit docs generated sample JOBS=$(HALF) REACH=

test-all:  ## The same with each supported Python that uv or the system has, each in an environment of its own
	@for version in $(PYTHONS); do \
	    python=$$(uv python find --no-python-downloads $$version 2>/dev/null || command -v python$$version); \
	    if ! "$$python" -c "" 2>/dev/null; then echo "there is no Python $$version"; continue; fi; \
	    echo "Python $$version: $$python"; \
	    $(MAKE) test PYTHON=$$python VENV=$(VENV)-$$version || exit 1; \
	done

pytest: $(VENV)/.dev  ## The Python tests, without generated programs; of modes and rows of tables a part, another each day
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist=worksteal --modes=$(MODES) --rows=$(ROWS) --tables=$(TABLES) --devices=$(DEVICES) --ignore=tests/properties

bridges: $(VENV)/.dev $(VENV)/.bridges  ## The tests of mutad.torch and mutad.jax against the packages (300 MB)
	$(BIN)/python -m pytest -q tests/bridges
	$(BIN)/python -m pytest -q tests/test_docs.py -k 'bridges or pytorch or jax'
	$(BIN)/python -m benchmarks bridges

generated: $(VENV)/.dev  ## Generated programs: the constructs in them, the lines of the frontend that they reach
	$(BIN)/python -m pytest -q -n $(WORKERS) --seeds=$(SEEDS) --tables=$(TABLES) tests/properties $(REACH)

sample: $(VENV)/.dev  ## A part of the gradient tests, another each day, for each level of x86-64 below this CPU's
	for cpu in x86-64-v2 x86-64-v3; do \
	    MUTAD_TARGET_CPU=$$cpu $(BIN)/python -m pytest -q -n $(WORKERS) --part=$(PART) --devices=$(DEVICES) tests/gradients || exit 1; \
	done

targets: $(VENV)/.dev  ## The Python tests again for each level of x86-64 that this CPU has
	for cpu in $$($(BIN)/python -c 'from mutad.runtime.target import runnable; print(*runnable()[1:])'); do \
	    MUTAD_TARGET_CPU=$$cpu $(BIN)/python -m pytest -q -n $(WORKERS) --devices=$(DEVICES) || exit 1; \
	done

devices: $(VENV)/.dev  ## Every gradient program as kernels, in place and by the emulated driver
	MUTAD_ON_DEVICES=programs $(BIN)/python -m pytest -q -n $(WORKERS) tests/gradients -k test_kernels
	MUTAD_KERNELS=100 $(BIN)/python -m pytest -q -n $(WORKERS) tests/properties/test_device_programs.py

refused: $(VENV)/.dev  ## Write the list of the gradient programs that a device refuses again
	: > tests/support/refused_on_devices.txt
	MUTAD_ON_DEVICES=list $(BIN)/python -m pytest -q tests/gradients -k "test_kernels and TestGradients"

lit: $(VENV)/.dev  ## The IR tests
	$(BIN)/lit -q -j $(JOBS) lit-tests

lint: $(VENV)/.dev  ## Style
	$(BIN)/ruff check .

types: $(VENV)/.dev  ## Types, strictly
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.dev  ## Rewrite the sources in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs  ## The documentation as a site, in build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # with -q it counts no warnings

pictures: $(VENV)/.demo $(VENV)/.bridges  ## Draw the pictures of the tutorials and the gallery again
	$(BIN)/python docs/pictures/draw.py

screens: $(VENV)/.demo  ## Photograph the receipt and the browser view in headless Chromium
	$(BIN)/python docs/pictures/screens.py

demo: $(VENV)/.demo  ## Recover a diffusivity field from a real elevation grid, by gradients
	$(BIN)/python examples/hillslope.py

demo-aot: $(VENV)/.demo  ## The same from C: its gradient in a library that mutadc makes (needs a C compiler)
	$(MAKE) -C examples/from_c PYTHON=$(abspath $(BIN)/python)

demo-gpu: $(VENV)/.demo  ## The same on a GPU, 4096 x 4096 cells; says what is missing where there is none
	$(BIN)/python examples/device.py

bench: $(VENV)/.bench  ## Times against Numba, JAX and PyTorch on this machine
	$(BIN)/python -m benchmarks

dist: $(VENV)/.dev  ## The source distribution and the wheel, in dist
	$(BIN)/python setup.py -q sdist
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist dist/mutad-*.tar.gz

clean:  ## Remove the virtual environment and all that was built
	rm -rf $(VENV) $(VENV)-* build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# PyTorch for CPUs alone: PyPI's has CUDA, which takes gigabytes.
$(VENV)/.bridges: export PIP_EXTRA_INDEX_URL ?= https://download.pytorch.org/whl/cpu

# One stamp for each extra: installed again when pyproject.toml changes.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -e '.[$*]'
	$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib >/dev/null || true # pip takes one core for it
	@touch $@
