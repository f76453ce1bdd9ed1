# Every target creates .venv if it is missing or out of date. RUN marks an environment with runtime dependencies,
# READY one with the development tools as well.
PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/run
READY := .venv/ready
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

DEMO := build/demo

KERNEL_TESTS := tests/jit/test_code_cache.py tests/jit/test_private.py tests/jit/test_shipped.py tests/learner/test_uncompiled.py tests/learner/test_intrinsics.py tests/learner/test_elementary.py

.PHONY: run survey build release-check test test-narrowed test-numba fuzz lint bench bench-quality bench-sparsity bench-certificates bench-cluster bench-serve screenshots loop reproduce docs site clean

# A real table and generated clicks: train, evaluate, explain.
run: $(RUN)
	mkdir -p $(DEMO)
	@echo "--- A real table: 569 tumours, every fifth for testing"
	$(BIN)/forel dev sample tumours --folder $(DEMO)
	$(BIN)/forel train $(DEMO)/tumours.csv --label diagnosis --model $(DEMO)/tumours.forel --quiet --report $(DEMO)/report.html
	$(BIN)/forel evaluate $(DEMO)/tumours_test.csv --model $(DEMO)/tumours.forel
	$(BIN)/forel explain $(DEMO)/tumours_test.csv --model $(DEMO)/tumours.forel --top 5
	@echo "--- Generated clicks: 100,000 rows of 39 words, the last 10,000 for testing"
	$(BIN)/forel dev generate ctr --rows 100000 --output $(DEMO)/clicks.vw
	head -n 90000 $(DEMO)/clicks.vw > $(DEMO)/train.vw
	tail -n 10000 $(DEMO)/clicks.vw > $(DEMO)/test.vw
	$(BIN)/forel train $(DEMO)/train.vw --model $(DEMO)/clicks.forel --certificate --quiet
	$(BIN)/forel evaluate $(DEMO)/test.vw --model $(DEMO)/clicks.forel
	@echo "--- What to type next"
	@echo "    $(BIN)/forel peek FILE.csv     shows the columns of a table of yours, and the command to train on it"
	@echo "    $(BIN)/forel serve DIR --model $(DEMO)/tumours.forel     answers over HTTP, and learns (needs the extra serve)"
	@echo "--- The report of the first model, for a browser: file://$(CURDIR)/$(DEMO)/report.html"

survey: $(READY)
	$(BIN)/forel dev survey

# Write a source distribution and a wheel to dist. The wheel has LLVM code of what `forel dev warm` compiles with each of
# PYTHONS, interpreters of environments with forel's dependencies; with other versions kernels are compiled.
PYTHONS ?= $(BIN)/python
WHEEL := build/wheel
build: $(READY)
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)/package dist
	$(BIN)/python -m build --no-isolation --sdist --outdir dist .
	tar -xzf dist/forel-$$($(BIN)/forel --version | cut -d' ' -f2).tar.gz -C $(WHEEL)/package --strip-components=1
	export PYTHONPATH=$(CURDIR)/$(WHEEL)/package/src PYTHONDONTWRITEBYTECODE=1 NUMBA_OPT=0 \
	  FOREL_LLVM=$(CURDIR)/$(WHEEL)/package/src/forel/jit/llvm; for python in $(PYTHONS); do \
	  export FOREL_CACHE=$$(mktemp -d $(CURDIR)/$(WHEEL)/XXXXXX) && $$python -m forel dev warm && \
	  $$python -m forel dev warm --formats vw --certificate || exit 1; \
	done
	$(BIN)/python -m build --no-isolation --wheel --outdir dist $(WHEEL)/package

# Build the files in dist, check their metadata and contents, and install and use them with each supported Python that
# is present, on the path or among INTERPRETERS, such as INTERPRETERS=/opt/python/bin/python3.13.
INTERPRETERS ?=
release-check: build
	$(BIN)/pytest -n 0 tests/project/test_packaging.py
	$(BIN)/python -m tests.release $(INTERPRETERS)

# Workers and the processes that tests start share bytecode, also where the environment says not to write it.
test test-narrowed: export PYTHONDONTWRITEBYTECODE =

test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal
	$(MAKE) test-narrowed

# Run the tests of generated data and of the documents without optional CPU features such as AVX-512. The guide to
# clusters shows no numbers.
test-narrowed: $(READY)
	env $$($(BIN)/python tests/narrowed.py) OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto \
		tests/data/test_clicks.py tests/project/test_docs.py::test_shell_blocks_run_in_order_and_print_what_is_shown \
		README.md docs --deselect \
		"tests/project/test_docs.py::test_shell_blocks_run_in_order_and_print_what_is_shown[docs/guide/cluster.md]"

# Run the kernel tests with the oldest and the newest supported numba, each in its own environment.
test-numba:
	for numba in 0.61.2 0.68.1; do \
	  $(PYTHON) -m venv build/numba-$$numba && \
	  build/numba-$$numba/bin/pip install --quiet --disable-pip-version-check "numba==$$numba" -e '.[cvx,river]' hypothesis pytest && \
	  FOREL_CACHE=$(CURDIR)/build/numba-$$numba/cache OPENBLAS_NUM_THREADS=1 build/numba-$$numba/bin/pytest $(KERNEL_TESTS) || exit 1; \
	done

# Run every fuzzer for SECONDS.
SECONDS ?= 600
fuzz: $(READY)
	FOREL_QUIET=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=src:. $(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# Check code and documentation; warnings of the documentation build are errors.
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) site

bench: $(READY)
	$(BIN)/python benchmarks/vocabulary.py
	$(BIN)/python benchmarks/reference.py
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/inputs.py
	$(BIN)/python benchmarks/river_door.py
	$(BIN)/python benchmarks/train.py --certified --lanes 16
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/passes.py
	$(BIN)/python benchmarks/predict_one.py
	$(BIN)/python benchmarks/classes.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/tables_speed.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/cold_start.py

bench-quality: $(READY)
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/tables_quality.py
	$(BIN)/python benchmarks/class_experts.py
	$(BIN)/python benchmarks/churn.py

bench-sparsity: $(READY)
	$(BIN)/python benchmarks/sparsity.py

# Compare certificates with batch optima; needs data in ../shared/data or in the directory FOREL_DATA.
bench-certificates: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/certificates.py

# Time training with files read on a local Ray, and measure the constants of larger clusters.
bench-cluster: $(READY)
	$(BIN)/python benchmarks/cluster.py

# Measure a server on the loopback interface, with the load generator on the same cores.
bench-serve: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/serve.py

# Photograph the pages, on a desktop and a phone, light and dark, into build/screenshots; needs chromium.
screenshots: site
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m website.screenshots build/screenshots

# The image of the dashboard in the guide, of visitors that come for 45 seconds.
docs/guide/dashboard.png: src/forel/serve/dashboard.html | $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m website.screenshots build/screenshots --only dashboard
	$(BIN)/python -c "from PIL import Image; Image.open('build/screenshots/dashboard_1280_light.png').convert('RGB').quantize(64).save('$@', optimize=True)"

# Serve generated clicks whose outcomes come late: killed, resumed, drifted, a challenger promoted.
loop: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/loop.py

# Measure claims of the literature; needs data in ../shared/data or in the directory FOREL_DATA.
reproduce: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m reproduce docs

# Write the generated pages and build the site in build/site.
docs: $(READY)
	$(BIN)/python -m website.argmin_page docs/argmin.md
	$(BIN)/python -m website.survey_map docs/survey_map.md
	$(MAKE) site

# Build the site; warnings and broken links are errors, and nothing is downloaded.
site: $(READY)
	OPENBLAS_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "To read it: $(BIN)/python -m http.server --directory build/site"

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/pip:
	$(PYTHON) -m venv .venv

$(RUN): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) -e .
	touch $@

$(READY): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) -e '.[dev]'
	touch $(RUN) $@
