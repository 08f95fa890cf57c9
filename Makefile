# Everything a newcomer needs: `make demo` and `make test`. Both build .venv themselves.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test soak lint types pictures screens choose results bench clean

demo: .venv/ready
	rm -rf runs/demo
	$(BIN)/lorpman train multidigits --out runs/demo

test: .venv/ready lint types
	$(BIN)/pytest

soak: .venv/ready
	$(BIN)/pytest -m soak --timeout 1800

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lorpman needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
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
	rm -rf .venv runs .mypy_cache .pytest_cache .ruff_cache .hypothesis
