"""The wheel: it holds the built front end, and `deemster view` serves it from there, without Node."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "src" / "deemster" / "view" / "static"


def test_installed_wheel_serves_the_viewer_without_node(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # What the tests keep from the network is not kept from pip.
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT], check=True, env=outside)
    (wheel,) = tmp_path.glob("deemster-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel], check=True, env=outside)
    deemster, store = [sys.executable, "-m", "deemster"], ["--store", tmp_path / "runs.db"]
    inside = {"PYTHONPATH": str(tmp_path / "site"), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    suite = ROOT / "examples" / "quickstart" / "suite.yml"
    subprocess.run([*deemster, "run", suite, "--quiet", *store], check=True, cwd=tmp_path, env=inside)
    started = subprocess.Popen(
        [*deemster, "view", "--port", "0", *store],
        cwd=tmp_path,
        env=inside,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = started.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert address, said + started.stdout.read()
        for name in ("index.html", "app.js", "app.css"):
            with urllib.request.urlopen(address[0] + name.replace("index.html", "")) as answer:
                assert answer.read() == (STATIC / name).read_bytes()
    finally:
        started.terminate()
        started.communicate()
