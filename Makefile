PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m

.PHONY: demo test lint types drift unit test-slow generate docs format clean

## demo: generate, check, size real checkpoints, and run one arena on host memory.
demo: $(VENV)/installed
	$(RUN) arenagen generate
	$(RUN) arenagen check
	$(VENV)/bin/python docs/demo.py

## test: lint, type checks, drift of generated/, and every test, the docs' examples too.
test: lint types drift unit

lint: $(VENV)/installed
	$(RUN) ruff check
	$(RUN) ruff check --isolated --no-cache generated
	$(RUN) black --quiet --check .
	$(RUN) arenagen lint --strict

types: $(VENV)/installed
	$(RUN) mypy generator docs/demo.py docs/diagnostics.py
	$(RUN) mypy -p runtime -p metrale_arena -p atlas_arena

drift: $(VENV)/installed
	$(RUN) arenagen check --full

unit: $(VENV)/installed
	$(RUN) pytest -n 2 --dist worksteal

## test-slow: the slow tests, those that take minutes too.
test-slow: $(VENV)/installed
	$(RUN) pytest -n 2 --dist worksteal -m slow

generate: $(VENV)/installed
	$(RUN) arenagen generate

## docs: write the pages that are made from the sources.
docs: $(VENV)/installed
	$(VENV)/bin/python docs/diagnostics.py

format: $(VENV)/installed
	$(RUN) ruff check --fix
	$(RUN) black --quiet .

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
