# `make test` installs what the tests need and runs all of them; `make ci` lints first. CI runs nothing else.

CARGO ?= cargo

.PHONY: bench ci lint fmt clippy docs test test-tools

ci: lint test

lint: fmt clippy docs

fmt:
	$(CARGO) fmt --check

clippy:
	$(CARGO) clippy --locked --all-targets -- -D warnings

# With the examples the dependencies have the same features as for clippy, so they are not checked a second time.
docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --lib --examples

# Unit tests, integration tests and the examples in the documentation.
test: test-tools
	$(CARGO) test --locked --no-fail-fast

# Tables of what everything costs; SECTIONS="operations --quick" runs a part of it.
bench: test-tools
	$(CARGO) bench --locked -- $(SECTIONS)

test-tools:
	@tests/harness/install.sh
