"""The migration guides: every row of their tables is executed, and every name of the other tool has its row.

A table of a guide has the columns *there*, *here*, *gives* and *difference*. The code in *here* is evaluated after the
guide's Python blocks, or run if it is a command; *gives* is what comes out. No row is without code, no table without
these columns. `tests/fixtures/migration` lists the names that the documents of the other tools describe.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from deemster.cli import app

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs" / "guide").glob("migrate-from-*.md"))
NAMES = ROOT / "tests" / "fixtures" / "migration"
HEADS = ["there", "here", "gives", "difference"]
SPAN = re.compile(r"`` (.+?) ``|`([^`]+)`")
LONGEST = 80


class Row(NamedTuple):
    """One row of a table: the line it stands on, and its cells."""

    line: int
    cells: tuple[str, ...]

    @property
    def there(self) -> list[str]:
        return spans(self.cells[0])

    @property
    def code(self) -> str | None:
        """What is executed; None where nothing is."""
        return next(iter(spans(self.cells[1])), None)


def spans(cell: str) -> list[str]:
    """The pieces of code in a cell."""
    return [wide or narrow for wide, narrow in SPAN.findall(cell)]


def rows(guide: Path) -> list[Row]:
    """The rows of every table with the four columns."""
    tokens = MarkdownIt().enable("table").parse(guide.read_text(encoding="utf-8"))
    found: list[Row] = []
    heads: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "thead_open":
            heads = cells(tokens, place, "thead_close")
        elif token.type == "tr_open" and heads == HEADS:
            here = cells(tokens, place, "tr_close")
            if here != HEADS:
                found.append(Row(token.map[0], tuple(here)))
    return found


def cells(tokens: list[Any], start: int, end: str) -> list[str]:
    """The text of the cells between two tokens."""
    found = []
    for token in tokens[start:]:
        if token.type == end:
            break
        if token.type == "inline":
            found.append(token.content)
    return found


def namespace(guide: Path) -> dict[str, Any]:
    """What the Python blocks of a guide define."""
    found: dict[str, Any] = {"__name__": "guide"}
    for token in MarkdownIt().parse(guide.read_text(encoding="utf-8")):
        if token.type != "fence":
            continue
        kind, *words = token.info.split()
        if words and words[0].endswith((".py", ".yml", ".yaml", ".json", ".jsonl")):
            Path(words[0]).write_text(token.content, encoding="utf-8")
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(token.content, guide.name, "exec"), found)
    return found


def outcome(code: str, names: dict[str, Any]) -> str:
    """What a piece of code gives, as a guide shows it."""
    if code.startswith("deemster "):
        return f"exit code {CliRunner().invoke(app, shlex.split(code)[1:]).exit_code}"
    return f"`{shown(eval(code, names))}`"


def shown(value: Any) -> str:
    if isinstance(value, float):
        return repr(round(float(value), 4))
    if isinstance(value, tuple | list) and value and all(isinstance(each, float) for each in value):
        inner = ", ".join(map(shown, value))
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    text = repr(value)
    return text if len(text) <= LONGEST and "\n" not in text else type(value).__name__


@pytest.fixture
def folder(folder, monkeypatch):
    """The working folder of a guide, with a copy of the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def test_there_is_a_guide_for_each_tool():
    assert [guide.stem.removeprefix("migrate-from-") for guide in GUIDES] == [
        "autorubric",
        "eval-harness",
        "gllm-evals",
    ]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_row_gives_what_the_guide_says(guide, folder, refresh_golden):
    names = namespace(guide)
    lines = guide.read_text(encoding="utf-8").split("\n")
    wrong = []
    for row in rows(guide):
        assert len(row.cells) == len(HEADS), f"{guide.name}:{row.line + 1}"
        assert row.code is not None, f"{guide.name}:{row.line + 1} has nothing to execute"
        try:
            found = outcome(html.unescape(row.code), names)
        except Exception as error:
            error.add_note(f"{guide.name}:{row.line + 1}: {row.code}")
            raise
        if found != row.cells[2]:
            wrong.append(f"{guide.name}:{row.line + 1}: {row.code} gives {found}, not {row.cells[2] or 'nothing'}")
            parts = re.split(r"(?<!\\)\|", lines[row.line])
            parts[3] = f" {found} ".replace("|", r"\|")
            lines[row.line] = "|".join(parts)
    if refresh_golden:
        guide.write_text("\n".join(lines), encoding="utf-8")
    assert refresh_golden or not wrong, "\n".join(wrong)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_line_of_every_table_is_a_row(guide):
    lines = [line for line in guide.read_text(encoding="utf-8").split("\n") if line.startswith("|")]
    heads = [line for line in lines if line == f"| {' | '.join(HEADS)} |"]
    rules = [line for line in lines if set(line) <= set("|-")]
    assert len(rules) == len(heads)
    assert len(rows(guide)) == len(lines) - 2 * len(heads)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_name_of_the_other_tool_has_one_row(guide):
    text = (NAMES / f"{guide.stem.removeprefix('migrate-from-')}.txt").read_text(encoding="utf-8")
    expected = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(expected) == len(set(expected))
    assert Counter(name for row in rows(guide) for name in row.there) == Counter(expected)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_readers_find_the_guide(guide):
    assert f"docs/guide/{guide.name}" in (ROOT / "README.md").read_text(encoding="utf-8")
