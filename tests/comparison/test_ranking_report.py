import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from markdown_it import MarkdownIt

import deemster as dm
from deemster.comparison.without_text import ranking_without_text
from deemster.errors import ReportError
from tests.comparison.test_comparison_sections import answers, evaluated
from tests.report.test_report_sections import MARKDOWN, NAMES, QUICK, parsed

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "deemster.ranking.v1.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def ranking():
    return dm.rank(*(evaluated(answers(right)) for right in (30, 55, 33)))


def test_ranking_fits_its_schema(ranking):
    jsonschema_rs.validator_for(SCHEMA).validate(json.loads(ranking.to_json()))


def test_every_form_says_the_same(ranking, tmp_path):
    for suffix in (".json", ".md", ".html"):
        ranking.save(tmp_path / f"r{suffix}")
    name = ranking.runs[1].run.id
    assert ranking.verdict == f"{name} is best: 21 to 59 points above the others."
    assert (tmp_path / "r.md").read_text(encoding="utf-8").startswith(f"# <code>{name}</code> is best: 21 to 59 points")
    assert f"</svg><code>{name}</code> is best: " in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert ranking._repr_html_().startswith(f"<div>\n<h2><code>{name}</code> is best: ")
    table = ranking.to_dataframe()
    assert table.best_rank.tolist() == [2, 1, 2]
    assert table.difference.tolist()[1:] == [one.against_first.pass_rate.difference for one in ranking.runs[1:]]
    assert repr(ranking).startswith(f"<Ranking of 3 runs: {name} is best: ")
    with pytest.raises(ReportError, match=r"says no format"):
        ranking.save(tmp_path / "r.xml")


@QUICK
@given(name=NAMES)
def test_hostile_names_make_no_element(name, ranking):
    replace = msgspec.structs.replace
    runs = tuple(replace(entry, run=replace(entry.run, label=name)) for entry in ranking.runs)
    against = replace(runs[1].against_first, warnings=(name,), not_comparable={name: name})
    named = replace(ranking, runs=(runs[0], replace(runs[1], against_first=against), runs[2]))
    page = parsed(MarkdownIt("commonmark").enable("table").render(named.to_markdown()))
    assert page.elements <= MARKDOWN
    assert page.attributes == set()
    assert page.odd == []
    plain = replace(ranking, runs=(runs[0], replace(runs[1], against_first=against), runs[2]))
    assert parsed(named.to_html()).elements == parsed(plain.to_html()).elements


def test_publish_safe_ranking_has_no_label(ranking):
    replace = msgspec.structs.replace
    runs = tuple(replace(entry, run=replace(entry.run, label="secret")) for entry in ranking.runs)
    safe = ranking_without_text(replace(ranking, runs=runs))
    assert "secret" not in safe.to_json()
    assert "secret" not in safe.to_markdown()
