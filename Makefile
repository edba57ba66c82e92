# Brain's commands. `make run` starts it from a bare checkout, `make test` runs every test.
.PHONY: run setup test test-long mutants check bench lock
.NOTPARALLEL:

PY := .venv/bin/python
WORKERS ?= 2
PYTEST := $(PY) -m pytest -n $(WORKERS)

# exec: the server is make's own child, so a signal to make alone reaches it too.
run: setup
	@exec $(PY) -m brain.serve

setup:
	@scripts/bootstrap

test:
	@scripts/bootstrap dev
	@scripts/test-tools
	@exec $(PYTEST)

# What takes minutes: every kill, every modelled power cut, many processes for a minute.
test-long:
	@scripts/bootstrap dev
	@exec $(PYTEST) -m long tests/store

# Each question to the authorizer taken out, one at a time: some test must fail. Takes long.
mutants:
	@scripts/bootstrap dev
	@exec $(PY) -m tests.leaks.mutants

check:
	@scripts/bootstrap dev
	@scripts/test-tools
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PYTEST)

# make bench [TREES=1000,10000,100000] [CORPUS=DIR] [ONLY=NAME,NAME] [JSON=FILE]; about five minutes by default.
bench:
	@scripts/bootstrap dev
	@exec $(PY) -m benchmarks.run $(if $(TREES),--trees $(TREES)) $(if $(CORPUS),--corpus "$(CORPUS)") \
		$(if $(ONLY),--only $(ONLY)) $(if $(JSON),--json "$(JSON)")

# Exact versions with hashes, for every platform, without the address of any index or a path of this machine.
# An entry stays at its version unless a .in file asks for another: make lock UPGRADE=--upgrade
lock:
	@scripts/bootstrap dev
	@for name in requirements requirements-dev; do \
		$(PY) -m uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --no-header $$name.in --output-file $$name.txt || exit 1; \
	done
