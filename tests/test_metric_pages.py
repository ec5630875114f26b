"""The pages of metrics match the catalog, and their worked examples are what the metrics give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deemster.judges.metric_catalog import entries
from website import metric_pages

FOLDER = Path(__file__).parent.parent / "docs" / "metrics"
BEGIN, END = "<!-- metrics -->\n", "<!-- end of metrics -->"


@pytest.fixture(scope="module")
def fresh() -> dict[str, str]:
    head, _, rest = (FOLDER / "README.md").read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    index = f"{head}{BEGIN}\n{metric_pages.index_tables()}\n\n{END}{tail}"
    return {"README.md": index, **{f"{name}.md": text for name, text in metric_pages.pages().items()}}


def test_pages_of_metrics_match_catalog(fresh, refresh_golden):
    if refresh_golden:
        for name, text in fresh.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")} == fresh


def test_every_metric_has_one_section(fresh):
    text = "\n".join(text for name, text in fresh.items() if name != "README.md")
    assert sorted(re.findall(r"^## (.*)$", text, re.MULTILINE)) == sorted(entry.name for entry in entries())


def test_worked_example_has_the_score_that_is_computed_by_hand(fresh):
    """Five words of six stand in the same order: 2·5/(6 + 6)."""
    assert "| `the cat sat on the mat` | `the cat lay on the mat` | **0.8333** |" in fresh["lexical.md"]
