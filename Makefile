# SPDX-License-Identifier: Apache-2.0
# Builds, tests and shows Lacis; every target does its own set-up, once.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

PYTHON ?= python3
VENV := $(if $(VIRTUAL_ENV),$(VIRTUAL_ENV),$(CURDIR)/.venv)
BIN := $(VENV)/bin
BUILD := build
STAMPS := $(VENV)/.lacis
JOBS ?= $(shell nproc)
TORCH ?= torch==2.13.0
WHEEL_VENV = $(CURDIR)/$(BUILD)/python-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# What a new build must notice. Python files need none: the installation reads them where they lie.
SOURCES := $(shell find include lib tools cmake python/bindings python/ops python/node -type f) CMakeLists.txt \
           $(wildcard test/CMakeLists.txt) $(shell find test/unit -type f 2>/dev/null)

# Neither an environment nor a build can be moved: where they were made, if that is not here.
HERE := $(realpath $(CURDIR))
BUILT_IN := $(shell sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' $(BUILD)/CMakeCache.txt 2>/dev/null)
VENV_OF := $(shell sed -n '1s|^\#!\(.*\)/.venv/bin/python.*|\1|p' .venv/bin/pip 2>/dev/null)
MOVED := $(addprefix moved-,$(if $(filter-out $(HERE) $(CURDIR),$(BUILT_IN)),build) $(if $(filter-out $(HERE) $(CURDIR),$(VENV_OF)),venv))

.PHONY: build test test-all demo bench docs wheel clean distclean moved-build moved-venv
build: $(STAMPS)/installed

$(STAMPS)/system: packages.txt
	.ci/system-packages
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/python: $(STAMPS)/system
	$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "lacis needs Python 3.10 or later" >&2; exit 1; }
	$(BIN)/python -c 'import torch.version as t; assert tuple(map(int, t.__version__.split(".")[:2])) >= (2, 10)' 2>/dev/null \
	  || $(BIN)/python -m pip install '$(TORCH)'
	$(BIN)/python -m pip install 'pip>=23.1' 'scikit-build-core>=0.11' 'pybind11>=2.13'
	touch $@

moved-build:
	@echo "this build was made in $(BUILT_IN): configured anew"
	rm -rf $(BUILD)/CMakeCache.txt $(BUILD)/CMakeFiles/CMakeScripts $(BUILD)/python-*

moved-venv:
	@echo "this environment was made in $(VENV_OF): its commands are set right"
	grep -rlIF '$(VENV_OF)/.venv' .venv/bin .venv/pyvenv.cfg | xargs -r sed -i 's|$(VENV_OF)/.venv|$(HERE)/.venv|g'

# A build that is configured shows what the compiler says; pip shows it among a hundred lines of its own.
$(STAMPS)/installed: $(STAMPS)/python pyproject.toml $(SOURCES) $(MOVED)
	test ! -e $(BUILD)/CMakeCache.txt || cmake --build $(BUILD)
	$(BIN)/python -m pip install --no-build-isolation -e '.[test]' -C cmake.define.LACIS_BUILD_TESTS=ON \
	  || { test ! -e $(BUILD)/CMakeCache.txt || cmake --build $(BUILD); exit 1; }
	$(BIN)/python .ci/link-build $(BUILD)
	touch $@

CHOICE := -m 'not long'

# All three run whatever the one before found; the target fails at the end if any did.
test: build
	failed=0; \
	$(BIN)/python -m pytest -q -n $(JOBS) $(CHOICE) || failed=1; \
	$(BIN)/python $(BIN)/lit -s $(BUILD)/test || failed=1; \
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=ignore || failed=1; \
	exit $$failed

test-all: CHOICE :=
test-all: export LACIS_TEST_LONG := 1
test-all: test

demo: build
	$(BIN)/python examples/sparse_bert.py

bench: build
	$(BIN)/python -m bench --write docs/benchmarks.md

docs: build
	$(BIN)/python docs/generate.py

# make wheel PYTHON=/path/to/python3.12: only the small extension is built again, the core serves every Python.
wheel: build
	test -x $(WHEEL_VENV)/bin/python || $(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install -q 'pip>=23.1' 'scikit-build-core>=0.11' 'pybind11>=2.13'
	PATH=$(BIN):$$PATH $(WHEEL_VENV)/bin/python -m pip wheel --no-build-isolation --no-deps -w dist . \
	  -C cmake.define.LACIS_TORCH_ROOT="$$($(BIN)/python -c 'import importlib.util as i; print(i.find_spec("torch").submodule_search_locations[0])')"

clean:
	rm -rf $(BUILD) dist $(STAMPS)

distclean: clean
	rm -rf .venv
