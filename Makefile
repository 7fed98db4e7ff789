# Each target makes .venv, installs the pinned requirements and does its job: nothing to set up by hand.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := .venv/.installed
# again, if its Python is gone or the folder was moved
WELL := $(shell $(BIN)/python -c 'import pip' 2>&1 && grep -qF "$(CURDIR)/.venv/" $(BIN)/pip && echo well)
ifneq ($(WELL),well)
.PHONY: $(INSTALLED)
endif
BUILT := _build/html/.built
# the masters of the last build, for every command, until it is said otherwise
ASSIGNMENTS ?= $(or $(shell head -n 1 chapters/assignments/.masters 2>/dev/null),assignments)
export ASSIGNMENTS
ifneq ($(word 2,$(ASSIGNMENTS)),)
$(error ASSIGNMENTS: a folder without spaces in its path is needed)
endif
SOURCES := $(shell find _config.yml _toc.yml package-lock.json chapters dpnotes ledger proofs site assignments $(ASSIGNMENTS) \
  tests/claims tests/*.py -type f -not -path '*/__pycache__/*' -not -path 'chapters/assignments/*')
PORT ?= 8000
# What acts before Python starts; the rest of what is set elsewhere is in site/surroundings.py.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTHONOPTIMIZE PYTHONINSPECT
# The tests start Python hundreds of times: it must not compile the package each time.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONUTF8 = 1
SITE = PYTHONPATH=site $(BIN)/python -m

GRADER = $(BIN)/python -m assignments.grader

# half of the tests, in their order, for each of two processes; who is done first takes of others'
PYTEST = $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal

# the parts of the book and of the tests whose sources are other ones than in their last green run
DUE = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.due

.PHONY: help book page serve offline-zip lab test style thorough grading quick bench attack assignments \
  grade gradescope pins newest clean

help:
	@echo "For everybody"
	@echo "  make book         build the site into _build/html, every notebook executed"
	@echo "  make serve        serve it on http://127.0.0.1:$(PORT)"
	@echo "  make page P=pure-dp   show one page while it is written, with its checks"
	@echo "  make lab          open the chapters as notebooks in JupyterLab"
	@echo "  make test         build and check what is due; all but the longest checks"
	@echo "  make quick        the quick tests of the package and of the claims"
	@echo "  make pdf          the whole book as one tagged PDF (printed by Chromium)"
	@echo "  make slides       a lecture deck for each chapter"
	@echo "  make offline-zip  the built site as a zip, to be read and run without network"
	@echo "  make assignments  write and check the student versions"
	@echo "  make grade HW=laplace SUBMISSIONS=in OUT=out   grade a folder of submissions"
	@echo "  make gradescope HW=laplace OUT=laplace.zip     an autograder for Gradescope"
	@echo "For maintainers"
	@echo "  make thorough     every check there is"
	@echo "  make bench        time and accuracy beside other libraries (installs them under .bench)"
	@echo "  make attack       random mechanisms against tests/oracles (N=1000 SEED=... to repeat)"
	@echo "                    random runs by the laws (PROPERTIES=10000), proofs (PROOFS=1000 SEED=0)"
	@echo "  make mutants      do the tests notice small changes? (ROOM=chapters/composition N=40)"
	@echo "  make pins         choose the versions again (FLAGS=--upgrade: the newest)"
	@echo "  make newest       does all this still work with today's releases? (a report)"
	@echo "  make clean        remove what was built"

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "Python 3.11 to 3.13 is needed: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	{ test -e $@ && $(BIN)/pip --version 2>&1 | grep -qF "$(CURDIR)/.venv"; } || $(PYTHON) -m venv --clear .venv || \
	  { echo "Python could not make .venv. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@rm -f $@  # what ends in between is made anew
	{ $(PIP) uv==0.13.9 && $(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.txt; } || \
	  $(PIP) -r requirements.txt || \
	  { echo "The requirements could not be installed. Is there network? Run this again."; exit 1; }
	$(PIP) --no-deps --no-build-isolation -e .
	@# relative: where a path holds an umlaut and the locale is C, Python could not read it
	for place in .venv/lib/python3.*/site-packages; do echo ../../../.. >"$$place/dpnotes.pth"; done
	@touch $@

book: $(INSTALLED)
	$(DUE) $(if $(ALL),--all) claims site
	@touch $(BUILT)

$(BUILT): $(INSTALLED) $(SOURCES)
	$(MAKE) book

serve: $(BUILT)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

offline-zip: $(BUILT)
	$(SITE) run.offline _build/html _build/dpnotes-offline.zip

# each save of a page, in the browser, with what must be mended
page: PORT = 8001
page: $(INSTALLED)
	@test -n "$(P)" || { echo "make page P=pure-dp"; exit 1; }
	$(BIN)/python site/author.py $(P) --port $(PORT)

lab: $(INSTALLED)
	$(SITE) carry.lab notebooks $(FLAGS)

.PHONY: pdf slides

pdf: $(BUILT)
	$(SITE) carry.pdf

slides: $(BUILT)
	$(SITE) carry.slides

test: $(INSTALLED)
	$(DUE) $(if $(ALL),--all)

style: $(INSTALLED)
	$(DUE) --all style

thorough: $(INSTALLED)
	$(DUE) --thorough

# as root
grading: $(INSTALLED)
	$(BIN)/python -m pytest -m "" tests/grading/test_class.py tests/grading/test_gradescope.py

quick: $(INSTALLED)
	$(PYTEST) -q -m "not slow and not thorough" --durations=10 tests/claims tests/package

bench: $(BUILT)
	$(BIN)/python bench/run.py
	$(BIN)/python bench/erm.py
	$(BIN)/python bench/proofs.py

attack: $(INSTALLED)
ifdef PROPERTIES
	$(BIN)/python -m tests.attack properties $(or $(SEED),0) $(PROPERTIES)
else ifdef PROOFS
	$(BIN)/python -m tests.attack proofs $(or $(SEED),0) $(PROOFS)
else
	SEED=$(or $(SEED),$(shell date +%s)) ATTACK=$(or $(N),1000) $(PYTEST) -q tests/package/test_oracles.py -k "draw or cases"
endif

.PHONY: mutants
mutants: $(INSTALLED)
	@test -n "$(ROOM)" || { echo "make mutants ROOM=chapters/composition [N=40] [SEED=1]"; exit 1; }
	$(BIN)/python -m tests.mutants $(ROOM) $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

assignments: $(INSTALLED)
	$(GRADER) build --masters "$(ASSIGNMENTS)"

# for the formulas on the pages for marking, which say so where it can't be had
node_modules/katex: | $(INSTALLED)
	-PATH="$(abspath $(BIN)):$$PATH" npm ci

grade: $(INSTALLED) node_modules/katex
	@test -n "$(HW)" -a -n "$(SUBMISSIONS)" -a -n "$(OUT)" || \
	  { echo "make grade HW=laplace SUBMISSIONS=folder OUT=folder [JOBS=4] [ROSTER=ids.csv] [SLICE=3/40]"; exit 1; }
	$(GRADER) grade --masters "$(ASSIGNMENTS)" $(if $(JOBS),--jobs $(JOBS)) $(if $(SLICE),--part $(SLICE)) \
	  $(if $(ROSTER),--roster "$(ROSTER)") $(FLAGS) $(HW) "$(SUBMISSIONS)" "$(OUT)"

gradescope: $(INSTALLED)
	@test -n "$(HW)" -a -n "$(OUT)" || { echo "make gradescope HW=laplace OUT=laplace.zip"; exit 1; }
	$(GRADER) gradescope --masters "$(ASSIGNMENTS)" $(HW) "$(OUT)"

# for every system; a version that is pinned stays, if it can
pins: $(INSTALLED)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header $(FLAGS) \
	  requirements.in -o requirements.txt

newest:
	.ci/newest

clean:
	rm -rf _build
