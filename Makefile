# Everything a fresh machine needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format docs clean

demo: $(VENV)/.train
	$(BIN)/dragoman demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.train
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.train: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[train]'
	touch $@

$(VENV)/.dev: $(VENV)/.train
	$(PIP) --editable '.[train,serve,dev]'
	touch $@
