"""The migration guides say what is true, and every name of the other tool has code here that is executed.

`tests/fixtures/migration` has two files for each tool. The list (`.txt`) has the names that its documents describe. The
page (`.md`) has a row for each: the code in *here* is evaluated after the page's Python blocks, or run if it is a
command, and *gives* is what comes out. A guide lists what differs; its rows are held against the rows of the page.
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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from deemster.cli import app

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs" / "guide").glob("migrate-from-*.md"))
NAMES = ROOT / "tests" / "fixtures" / "migration"
EXECUTED = sorted(NAMES.glob("*.md"))
HEADS = ["there", "here", "gives"]
GUIDE_HEADS = ["there", "here", "difference"]
# The name that a member, an argument or a column has by itself.
MEMBER = re.compile(r"^(?:[\w.]+[.(]|column )(\w+)\)?$")
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


def rows(page: Path, columns: list[str] = HEADS) -> list[Row]:
    """The rows of every table with these columns."""
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    found: list[Row] = []
    heads: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "thead_open":
            heads = cells(tokens, place, "thead_close")
        elif token.type == "tr_open" and heads == columns:
            here = cells(tokens, place, "tr_close")
            if here != columns:
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


def namespace(page: Path) -> dict[str, Any]:
    """What the Python blocks of a page define."""
    found: dict[str, Any] = {"__name__": "guide"}
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type != "fence":
            continue
        kind, *words = token.info.split()
        if words and words[0].endswith((".py", ".yml", ".yaml", ".json", ".jsonl")):
            Path(words[0]).write_text(token.content, encoding="utf-8")
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(token.content, page.name, "exec"), found)
    return found


def outcome(code: str, names: dict[str, Any]) -> str:
    """What a piece of code gives, as a page shows it."""
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
    """The working folder of a page, with a copy of the examples."""
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


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_code_of_every_row_gives_what_the_page_says(page, folder, refresh_golden):
    names = namespace(page)
    lines = page.read_text(encoding="utf-8").split("\n")
    wrong = []
    for row in rows(page):
        assert row.code is not None, f"{page.name}:{row.line + 1} has nothing to execute"
        try:
            found = outcome(html.unescape(row.code), names)
        except Exception as error:
            error.add_note(f"{page.name}:{row.line + 1}: {row.code}")
            raise
        if found != row.cells[2]:
            wrong.append(f"{page.name}:{row.line + 1}: {row.code} gives {found}, not {row.cells[2] or 'nothing'}")
            parts = re.split(r"(?<!\\)\|", lines[row.line])
            parts[3] = f" {found} ".replace("|", r"\|")
            lines[row.line] = "|".join(parts)
    if refresh_golden:
        page.write_text("\n".join(lines), encoding="utf-8")
    assert refresh_golden or not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("page", "columns"),
    [*((page, HEADS) for page in EXECUTED), *((page, GUIDE_HEADS) for page in GUIDES)],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_every_line_of_every_table_is_a_row(page, columns):
    lines = [line for line in page.read_text(encoding="utf-8").split("\n") if line.startswith("|")]
    heads = [line for line in lines if line == f"| {' | '.join(columns)} |"]
    rules = [line for line in lines if set(line) <= set("|-")]
    assert len(rules) == len(heads)
    assert len(rows(page, columns)) == len(lines) - 2 * len(heads)


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_every_name_of_the_other_tool_has_one_row(page):
    text = page.with_suffix(".txt").read_text(encoding="utf-8")
    expected = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(expected) == len(set(expected))
    assert Counter(name for row in rows(page) for name in row.there) == Counter(expected)


def executed(guide: Path) -> dict[str, str]:
    """What is executed for each name of the other tool: the code, and what it gives."""
    page = NAMES / f"{guide.stem.removeprefix('migrate-from-')}.md"
    return {name: " ".join(row.cells[1:]) for row in rows(page) for name in row.there}


def named(span: str, names: Iterable[str]) -> set[str]:
    """The names that a guide means: one in full, or all with this last part."""
    return {name for name in names if name == span or name.endswith(f".{span}")}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_what_a_guide_says_of_a_name_is_in_its_code(guide):
    code = executed(guide)
    for row in rows(guide, GUIDE_HEADS):
        for span in row.there:
            assert named(span, code), f"{guide.name}:{row.line + 1}: nobody knows `{span}`"
        tried = " ".join(code[name] for span in row.there for name in named(span, code))
        assert row.code is not None, f"{guide.name}:{row.line + 1} says nothing of this package"
        for span in spans(row.cells[1]):
            assert span in tried, f"{guide.name}:{row.line + 1}: `{span}` is not in {tried}"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_name_that_a_guide_does_not_list_is_the_same_here(guide):
    code = executed(guide)
    listed = {name for row in rows(guide, GUIDE_HEADS) for span in row.there for name in named(span, code)}
    members = {name: match[1] for name in code.keys() - listed if (match := MEMBER.search(name))}
    prefixes = ("na_", "ca_")  # the guide for autorubric says that these are gone
    others = [
        name
        for name, member in members.items()
        if member not in code[name] and not (member.startswith(prefixes) and member[3:] in code[name])
    ]
    assert others == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_readers_find_the_guide(guide):
    assert f"docs/guide/{guide.name}" in (ROOT / "README.md").read_text(encoding="utf-8")
