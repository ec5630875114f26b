"""The front end: its sources make the files that the package ships, to the byte, and pass their own checks."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "src" / "deemster" / "view" / "static"


@pytest.fixture(scope="module")
def npm():
    """Runs npm on the front end, with its packages as the lock file names them."""

    def run(*arguments):
        command = ["npm", *arguments]
        done = subprocess.run(command, check=False, cwd=FRONTEND, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    if not (FRONTEND / "node_modules" / ".package-lock.json").exists():
        run("ci")
    return run


def test_shipped_files_are_what_the_sources_make(npm, tmp_path):
    npm("run", "build", "--", "--outDir", str(tmp_path / "built"), "--emptyOutDir")
    made = {path.name: path.read_bytes() for path in (tmp_path / "built").iterdir()}
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert made.keys() == shipped.keys() == {"app.css", "app.js", "index.html"}
    differing = [name for name in made if made[name] != shipped[name]]
    assert differing == [], "Build the front end again: cd frontend && npm ci && npm run build"


def test_functions_of_the_front_end_pass_their_tests(npm):
    npm("test")


def test_script_is_classic_and_names_no_other_host():
    script = (STATIC / "app.js").read_text(encoding="utf-8")
    assert not re.search(r"^\s*(import|export)\b|\bimport\(|\beval\(|new Function\(", script, re.MULTILINE)
    known = {"http://www.w3.org", "https://svelte.dev"}  # names of XML, and where Svelte explains its errors
    assert set(re.findall(r"https?://[a-z0-9.]+", script)) <= known
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page) == ["app.css", "app.js"]


def test_lock_file_is_whole_and_names_no_registry():
    packages = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
    # `npm ci` refuses a lock file without the packages of other platforms.
    optional = {name for package in packages.values() for name in package.get("optionalDependencies", ())}
    assert [name for name in sorted(optional) if f"node_modules/{name}" not in packages] == []
