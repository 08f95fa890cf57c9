# Everything a newcomer needs: `make demo` and `make test`. Both build .venv themselves.
PYTHON ?= python3
BIN := .venv/bin
# Tests side by side; all tests of a file stay together, because they share what a file trains.
WORKERS ?= 2
PYTEST := pytest -n $(WORKERS) --dist loadfile

.PHONY: demo test quick test-floor mutants soak lint arrows types pictures screens choose results bench clean

demo: .venv/ready
	rm -rf runs/demo
	$(BIN)/lorpman train multidigits --out runs/demo

test: .venv/ready lint arrows types
	$(BIN)/$(PYTEST)

# While working: an answer in under 90 seconds.
quick: .venv/ready lint arrows
	$(BIN)/$(PYTEST) -m 'not soak and not slow' tests/manifold tests/rules tests/front tests/training

# The tests on the lowest versions that pyproject.toml allows, in an environment of their own.
# The oldest torch comes with CUDA (4 GB) unless PIP_EXTRA_INDEX_URL names an index of CPU builds.
test-floor: .venv-floor/ready
	.venv-floor/bin/$(PYTEST)

# Small faults are sown into the rooms that compute; nine of ten must be found by the tests.
# More options in MUTANTS, for instance: make mutants MUTANTS="--number 40 --seed 1"
mutants: .venv/ready
	$(BIN)/python .ci/mutants.py $(MUTANTS)

# Endurance: garbage by the thousand, forty kills, forty clients for two minutes (half an hour).
# LORPMAN_SOAK=0.1 make soak is a tenth of it.
soak: .venv/ready
	$(BIN)/pytest -m soak --timeout 1800

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Which room may import which: the contract is in pyproject.toml.
arrows: .venv/ready
	$(BIN)/lint-imports

types: .venv/ready
	$(BIN)/mypy

.venv/ready: INSTALL := --constraint constraints.txt --editable '.[dev]'
.venv-floor/ready: INSTALL := --constraint floors.txt --editable '.[test]'
.venv/ready .venv-floor/ready: %/ready: pyproject.toml constraints.txt floors.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lorpman needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=python3.11")'
	test -x $*/bin/python || $(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --disable-pip-version-check $(INSTALL)
	touch $@

# The pictures of the README.
pictures: .venv/ready
	rm -rf runs/pictures
	$(BIN)/lorpman train multidigits --out runs/pictures/multidigits
	$(BIN)/lorpman train toy --out runs/pictures/toy
	cp runs/pictures/multidigits/front.png docs/pictures/multidigits-front.png
	cp runs/pictures/toy/toy.png docs/pictures/toy.png

# The picture and the animation of the explorer, taken from the page itself (needs Chromium).
screens: .venv/ready
	test -f runs/screens/front.json || $(BIN)/lorpman train multidigits --out runs/screens
	$(BIN)/python benchmarks/screens.py runs/screens --out docs/pictures

# Scale, freeze epoch and frozen heads, chosen on validation data as in the paper (an hour or two).
choose: .venv/ready
	$(BIN)/python benchmarks/choose.py multimnist --out results/multimnist/choice
	$(BIN)/python benchmarks/choose.py census --grid --out results/census/choice

# The tables, pictures and page of results, from the JSONs that are kept there; trains nothing.
results: .venv/ready
	$(BIN)/python benchmarks/write_results_page.py
	$(BIN)/python benchmarks/write_beyond_page.py

# Every number and picture of docs/performance.md, on an otherwise quiet machine (20 minutes).
# More options in BENCH, for instance: make bench BENCH="--threads 2"
bench: .venv/ready
	$(BIN)/lorpman bench --out results/bench $(BENCH)
	$(BIN)/python benchmarks/write_performance_page.py results/bench docs/performance.md

clean:
	rm -rf .venv .venv-floor mutants runs .mypy_cache .pytest_cache .ruff_cache .hypothesis
