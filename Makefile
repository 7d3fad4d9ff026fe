# Every target sets up what it needs: a machine with Python 3.10 or newer, pip and make is enough.
#
#   make test PYTHON=python3.12    chooses the interpreter of .venv
#   make test ARGS='-k regressor'  hands arguments on to pytest

.DEFAULT_GOAL := help
SHELL := /bin/sh
MIN_PYTHON := (3, 10)
# The first interpreter that is new enough.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(sys.version_info < $(MIN_PYTHON))' 2>/dev/null && echo $$python && break; done)
UV_VERSION := 0.13.7
ARGS ?=
# Compiled once, and not by both processes of the tests.
WARM_UP = @$(RUN)python -m quad_dynamics warm-up --quiet
# The tests of a file run in one process, and share what they make: models, logs, bags, installations. (Marks
# xdist_group have no effect: pytest-xdist 3.8 cannot group tests of pytest 9.2.)
PARALLEL = OMP_NUM_THREADS=1 $(RUN)python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# A machine that others use too may stand still for a moment: what fails there gets a second chance. 5: nothing chosen.
REALTIME = OMP_NUM_THREADS=1 $(RUN)python -m pytest -m realtime

VENV := .venv
RUN := $(VENV)/bin/
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready
LOCK_TOOL := .venv-lock

# A ROS installation that is sourced in this shell would put its own packages before the locked ones.
unexport PYTHONPATH
unexport PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# An interpreter that is asked for and is not the one of .venv: make .venv anew.
ifneq ($(origin PYTHON),file)
version_of = $(shell $(1) -c 'import sys; print(sys.version)' 2>/dev/null)
ifneq ($(call version_of,$(PYTHON)),$(call version_of,$(RUN)python))
$(LOCKED): other_python
endif
endif

.PHONY: help env sim demo test quick bench scenarios nodes docs figures lint format lock clean distclean other_python

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

env: $(READY)  ## set up .venv from requirements/lock.txt

sim: $(READY)  ## start the simulation with its page; ROBOT=path/to/robot.urdf ARGS='--terrain stairs'
	$(RUN)python -m quad_dynamics sim $(if $(ROBOT),--robot '$(ROBOT)') $(ARGS)

demo: $(READY)  ## hide a payload and friction in a simulated robot, and identify them; ARGS='--seed 7'
	$(RUN)python -m quad_dynamics demo identify $(if $(ROBOT),--robot '$(ROBOT)') $(ARGS)

test: $(READY)  ## run all tests, the slow ones too
	$(WARM_UP)
	$(PARALLEL) -m 'not realtime' $(ARGS)
	$(REALTIME) $(ARGS) || test $$? -eq 5 || $(REALTIME) --last-failed --last-failed-no-failures none $(ARGS)

quick: $(READY)  ## run the tests that are not slow
	$(WARM_UP)
	$(PARALLEL) -m 'not slow and not realtime' $(ARGS)

bench: $(READY)  ## run the benchmarks
	$(RUN)python -m benchmarks.run $(ARGS)

scenarios: $(READY)  ## let six robots walk as config/scenarios says; ARGS='trot --robots go2 --seeds 2'
	$(RUN)python -m benchmarks.scenarios $(ARGS)

figures: $(READY)  ## draw the pictures of the docs, with the figures of the last bench
	$(RUN)python docs/figures/overview.py
	$(RUN)python docs/figures/simulation_growth.py
	$(RUN)python docs/figures/contact_models.py
	$(RUN)python docs/figures/push_limits.py
	$(RUN)python docs/figures/walking_contact.py
	$(RUN)python docs/figures/walking.py

nodes: $(READY)  ## measure the pace of the nodes; ARGS='--page --seconds 60'
	$(RUN)python -m benchmarks.nodes $(ARGS)

docs: $(READY)  ## write the pages about the nodes and the records, from their code
	$(RUN)python docs/node_pages.py
	$(RUN)python docs/memory_page.py

lint: $(READY)  ## check style, types and the direction of imports
	$(RUN)ruff check
	$(RUN)ruff format --check
	$(RUN)mypy
	$(RUN)lint-imports

format: $(READY)  ## format the code and mend what can be mended
	$(RUN)ruff check --fix
	$(RUN)ruff format

lock: $(LOCK_TOOL)/bin/uv  ## resolve requirements/*.in anew into requirements/*.txt
	cd requirements && $(COMPILE) dev.in -o lock.txt
	cd requirements && $(COMPILE) build.in --constraint lock.txt -o build.txt

clean:  ## remove what builds, tests and tools left behind
	rm -rf build dist install log *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)*' -prune -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	rm -rf $(VENV) $(LOCK_TOOL)

# The lock does not tell where it was made: no index, no paths. Extras stay, or pip's hash check misses them.
COMPILE = ../$(LOCK_TOOL)/bin/uv pip compile --quiet --no-config --upgrade --universal --python-version 3.10 \
	--generate-hashes --no-annotate --no-strip-extras --custom-compile-command 'make lock'

define check_python
@command -v '$(firstword $(PYTHON))' >/dev/null || { echo \
	"No Python 3.10 or newer was found$(if $(PYTHON), as '$(PYTHON)'). Install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < $(MIN_PYTHON))' || { echo \
	"$(PYTHON) is $$($(PYTHON) -V 2>&1), but 3.10 or newer is needed. Name another one: make PYTHON=/path/to/python3" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo \
	"$(PYTHON) has no venv module with ensurepip. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

$(LOCK_TOOL)/bin/uv: Makefile
	$(check_python)
	$(PYTHON) -m venv --clear $(LOCK_TOOL)
	$(LOCK_TOOL)/bin/python -m pip install --quiet uv==$(UV_VERSION)

# empy, of colcon, has no wheel: it is built here, with the locked setuptools.
$(LOCKED): requirements/lock.txt requirements/build.txt
	$(check_python)
	$(PYTHON) -m venv --clear $(VENV)
	$(RUN)python -m pip install --quiet --require-hashes --only-binary :all: -r requirements/build.txt
	$(RUN)python -m pip install --quiet --require-hashes --only-binary :all: --no-binary empy --no-build-isolation \
		-r requirements/lock.txt
	@touch $@

$(READY): $(LOCKED) setup.py setup.cfg
	$(RUN)python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
