"""The first recipes of CONTRIBUTING.md are followed to the letter in a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COPIED = (
    "src",
    "tests",
    "docs",
    "examples",
    "website",
    "schemas",
    "bench",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)


def recipe(title: str) -> str:
    """The text of one recipe."""
    found = re.search(rf"^### {title}\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what a contributor changes."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("static", ".deemster"))
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def follow(tree: Path, text: str) -> list[str]:
    """Write the files of a recipe and run its commands; what each of them printed."""
    for path, body in re.findall(r"^```\w+ (src/\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tree / path).write_text(body, encoding="utf-8")
    printed = []
    for commands in re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        printed += [run(tree, *line.split()) for line in commands.splitlines()]
    return printed


def run(tree: Path, program: str, *arguments: str) -> str:
    """Run a program in the copy, with a folder of its own for what it writes aside; what it printed."""
    aside = tree / "aside"
    aside.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "TMPDIR": str(aside)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_metric_of_the_recipe_is_in_the_catalog_with_its_page(tree):
    *_, shown = follow(tree, recipe("A metric"))
    assert "1 if the output ends with the expected text" in shown
    assert "## ends-with" in (tree / "docs" / "metrics" / "lexical.md").read_text(encoding="utf-8")
    assert "`EndsWith`" in (tree / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    run(tree, "pytest", "-q", "-n", "0", "tests/laws/test_catalog.py", "-k", "ends-with")


def test_judge_of_the_recipe_is_in_the_catalog(tree):
    *_, shown = follow(tree, recipe("A judge"))
    assert "Whether the answer is polite." in shown


def test_section_of_the_recipe_is_in_every_form_of_a_report(tree):
    text = recipe("A section of the report")
    sections = tree / "src" / "deemster" / "report" / "report_sections.py"
    code = sections.read_text(encoding="utf-8")
    assert "        failing_section(report),\n" in code
    code = code.replace(
        "        failing_section(report),\n", "        longest_outputs(report),\n        failing_section(report),\n"
    )
    sections.write_text(
        code.replace(
            "from deemster.report.usage_sections",
            "from deemster.report.longest_outputs import longest_outputs\nfrom deemster.report.usage_sections",
            1,
        ),
        encoding="utf-8",
    )
    for path, body in re.findall(r"^```\w+ (src/\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tree / path).write_text(body, encoding="utf-8")

    forms = ("--to", "report.md", "--to", "report.html", "--store", "none")
    printed = run(tree, "deemster", "run", "examples/quickstart/suite.yml", "--full", *forms)

    shown = [printed, *((tree / name).read_text(encoding="utf-8") for name in ("report.md", "report.html"))]
    assert ["Longest outputs" in each for each in shown] == [True, True, True]
    run(tree, "pytest", "-q", "-n", "0", "tests/text/test_text_sections.py", "-k", "after_every_section")
