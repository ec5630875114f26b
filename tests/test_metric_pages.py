"""What is made from the classes of metrics is what they declare, and worked examples are what the metrics give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deemster.judges import _metric_table
from deemster.judges.metric_catalog import entries
from website import metric_declarations, metric_pages

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "metrics"
BEGIN, END = "<!-- metrics -->\n", "<!-- end of metrics -->"
COMMAND = "pytest tests/test_metric_pages.py tests/cli/test_main_bad_inputs.py --refresh-golden -n 0"
CLASSES = metric_declarations.metric_classes()


def with_block(page: Path, block: str) -> str:
    """A page with another text between its marks."""
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return f"{head}{BEGIN}\n{block}\n\n{END}{rest.partition(END)[2]}"


def assert_written(file: Path, text: str, *, refresh: bool) -> None:
    if refresh:
        file.write_text(text, encoding="utf-8")
    is_current = file.exists() and file.read_text(encoding="utf-8") == text
    assert is_current, f"{file.relative_to(ROOT)} is not what the classes of metrics declare. Write it: {COMMAND}"


@pytest.fixture(scope="module", autouse=True)
def _table(refresh_golden: bool) -> None:
    """The catalog knows a new metric as soon as the table does."""
    if refresh_golden:
        text = metric_declarations.table_text()
        metric_declarations.TABLE.write_text(text, encoding="utf-8")
        fresh: dict[str, dict] = {}
        exec(text, fresh)
        for name in ("TABLE", "PRESETS", "SHORT", "PLACES"):
            getattr(_metric_table, name).clear()
            getattr(_metric_table, name).update(fresh[name])


@pytest.mark.parametrize("alias", CLASSES)
def test_metric_is_declared_whole(alias):
    metric = CLASSES[alias]
    declared, _, examples = (metric.__doc__ or "").partition("Worked examples:\n")
    assert declared.strip(), f"{metric.__name__} has no docstring; its first line is what the catalog says of it."
    assert examples.strip(), f"The docstring of {metric.__name__} has no `Worked examples:`, and its page needs one."
    assert metric.family in metric_pages.PAGES, f"No page in website/metric_pages.py has the family {metric.family}."


def test_table_of_names_matches_classes(refresh_golden):
    assert_written(metric_declarations.TABLE, metric_declarations.table_text(), refresh=refresh_golden)


@pytest.mark.parametrize("room", metric_declarations.ROOMS)
def test_stub_of_room_has_its_metrics(room, refresh_golden):
    stub = metric_declarations.SOURCE / room / "__init__.pyi"
    assert_written(stub, metric_declarations.stub_text(room), refresh=refresh_golden)


def test_chapter_of_the_reference_matches_classes(refresh_golden):
    page = ROOT / "docs" / "reference" / "python.md"
    assert_written(page, with_block(page, "\n".join(metric_declarations.reference_table())), refresh=refresh_golden)


def test_pages_of_metrics_match_catalog(refresh_golden):
    index = FOLDER / "README.md"
    assert_written(index, with_block(index, metric_pages.index_tables()), refresh=refresh_golden)
    pages = metric_pages.pages()
    for name, text in pages.items():
        assert_written(FOLDER / f"{name}.md", text, refresh=refresh_golden)
    assert {path.stem for path in FOLDER.glob("*.md")} == {"README", *pages}


def test_every_metric_has_one_section():
    text = "\n".join(metric_pages.pages().values())
    assert sorted(re.findall(r"^## (.*)$", text, re.MULTILINE)) == sorted(entry.name for entry in entries())


def test_worked_example_has_the_score_that_is_computed_by_hand():
    """Five words of six stand in the same order: 2·5/(6 + 6)."""
    lexical = (FOLDER / "lexical.md").read_text(encoding="utf-8")
    assert "| `the cat sat on the mat` | `the cat lay on the mat` | **0.8333** |" in lexical
