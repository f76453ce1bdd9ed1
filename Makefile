# Every target sets up .venv by itself; when it is there and current that takes no time.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: run test lint bench bench-sparsity docs clean

run: $(READY)
	$(BIN)/forel survey --plots figures

test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/vocabulary.py
	$(BIN)/python benchmarks/reference.py
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/river_door.py

bench-sparsity: $(READY)
	$(BIN)/python benchmarks/sparsity.py

docs: $(READY)
	$(BIN)/python -m forel.argmin docs/argmin.md
	$(BIN)/python -m forel.survey docs/survey_map.md

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
