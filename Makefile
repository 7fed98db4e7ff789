# Each target makes .venv, installs the pinned requirements and does its job: nothing to set up by hand.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
BUILT := _build/html/.built
SOURCES := $(shell git ls-files _config.yml _toc.yml chapters dpnotes ledger site tests/claims ':(glob)tests/*.py' package-lock.json 2>/dev/null)
PORT ?= 8000
# Small matrices: more threads would only get into each other's way, and could change last digits.
export OMP_NUM_THREADS = 1
# The tests start Python hundreds of times: it must not compile the package each time.
export PYTHONDONTWRITEBYTECODE =

ASSIGNMENTS ?= assignments
GRADER = $(BIN)/python -m assignments.grader

# a file's tests share what is slow to start, so that they stay in one process
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# a busy machine may take long to start a kernel
NBVAL = -p tests.quick_nbval -p nbval --nbval --nbval-current-env --nbval-kernel-startup-timeout=900

.PHONY: help book serve offline-zip lab test thorough checks quick bench attack assignments grade \
  gradescope pins newest sbom clean

help:
	@echo "make book     build the site into _build/html, every notebook executed"
	@echo "make serve    serve it on http://127.0.0.1:$(PORT)"
	@echo "make offline-zip  the built site as a zip, to be read and run without network"
	@echo "make lab      open the chapters as notebooks in JupyterLab"
	@echo "make pdf      the whole book as one tagged PDF, _build/dpnotes.pdf (printed by Chromium)"
	@echo "make epub     the whole book for a reader's device, _build/dpnotes.epub"
	@echo "make slides   a lecture deck for each chapter, _build/slides/index.html"
	@echo "make quick    the quick tests of the package and of the claims, in a minute"
	@echo "make test     build if needed (which tests the claims), then every check but the longest"
	@echo "make thorough build if needed, then every check there is"
	@echo "make bench    time and accuracy beside other libraries (installs them under .bench)"
	@echo "make attack   thousands of random mechanisms against oracles (N=5000 SEED=... to repeat)"
	@echo "make mutants  do the tests notice small changes of the code? (hours; ROOM=composition: one room)"
	@echo "make assignments                               write and check the student versions"
	@echo "make grade HW=laplace SUBMISSIONS=in OUT=out   grade a folder of submissions"
	@echo "make gradescope HW=laplace OUT=laplace.zip     an autograder for Gradescope"
	@echo "make pins     choose the versions again (FLAGS=--upgrade: the newest), with their hashes"
	@echo "make newest   does all this still work with today's releases? (a report, nothing is changed)"
	@echo "make sbom     everything that is installed, as CycloneDX, into _build/sbom.json"

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "Python 3.11 to 3.13 is needed: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

book: $(INSTALLED)
	DPNOTES_EVIDENCE=_build/evidence.json $(PYTEST) -q -m "" tests/claims
	$(BIN)/python site/build.py
	touch $(BUILT)

$(BUILT): $(INSTALLED) $(SOURCES)
	$(MAKE) book

serve: $(BUILT)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

offline-zip: $(BUILT)
	$(BIN)/python site/offline.py _build/html _build/dpnotes-offline.zip

lab: $(INSTALLED)
	$(BIN)/python site/lab.py notebooks $(FLAGS)

.PHONY: pdf epub slides

pdf: $(BUILT)
	$(BIN)/python site/pdf.py

epub: $(BUILT)
	$(BIN)/python site/epub.py

slides: $(BUILT)
	$(BIN)/python site/slides.py

# tests/claims ran when the book was built, from the same sources
test: MARKED = not thorough
thorough: MARKED =
test thorough: checks

checks: $(BUILT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	TQDM_DISABLE=1 $(PYTEST) --loadscope-reorder $(NBVAL) -q _build/jupyter_execute
	$(PYTEST) -m "$(MARKED)" --durations=20 --ignore=tests/claims tests

quick: $(INSTALLED)
	$(PYTEST) -q -m "not slow and not thorough" --durations=10 tests/claims tests/package

bench: $(INSTALLED)
	$(BIN)/python bench/run.py
	$(BIN)/python bench/erm.py

N ?= 5000
attack: $(INSTALLED)
	$(BIN)/python -m tests.attack --settings $(N) $(if $(SEED),--seed $(SEED))

# Beside .venv, for whoever asks; without its dependencies, of which .venv has the others.
.mutants/mutmut:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .mutants \
	  mutmut==3.8.1 libcst==1.9.0 setproctitle==1.3.8 textual==8.2.8 rich==15.0.0

.PHONY: mutants
mutants: $(INSTALLED) .mutants/mutmut
	PYTHONPATH=.mutants $(BIN)/python tests/mutate.py $(ROOM) $(FLAGS)

assignments: $(INSTALLED)
	$(GRADER) build --masters $(ASSIGNMENTS)

grade: $(INSTALLED)
	@test -n "$(HW)" -a -n "$(SUBMISSIONS)" -a -n "$(OUT)" || \
	  { echo "make grade HW=laplace SUBMISSIONS=folder OUT=folder [JOBS=4] [ROSTER=ids.csv] [SLICE=3/40]"; exit 1; }
	$(GRADER) grade --masters $(ASSIGNMENTS) $(if $(JOBS),--jobs $(JOBS)) $(if $(SLICE),--part $(SLICE)) \
	  $(if $(ROSTER),--roster $(ROSTER)) $(FLAGS) $(HW) $(SUBMISSIONS) $(OUT)

gradescope: $(INSTALLED)
	@test -n "$(HW)" -a -n "$(OUT)" || { echo "make gradescope HW=laplace OUT=laplace.zip"; exit 1; }
	$(GRADER) gradescope --masters $(ASSIGNMENTS) $(HW) $(OUT)

UV = .pins/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate $(FLAGS)
pins:
	test -x .pins/bin/uv || { $(PYTHON) -m venv .pins && .pins/bin/pip install --quiet uv==0.13.9; }
	$(UV) --custom-compile-command "make pins" requirements.in -o requirements.txt
	$(UV) --custom-compile-command "make pins" assignments/requirements.in -c requirements.txt \
	  -o assignments/requirements.txt

newest:
	.ci/newest

sbom: $(INSTALLED)
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o _build/sbom.json $(BIN)/python

clean:
	rm -rf _build
