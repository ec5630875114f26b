"""Samples are filtered and sorted as one would by hand over the report."""

from __future__ import annotations

import warnings
from urllib.parse import quote

import pytest

import deemster as dm
from deemster.report.failing_samples import worst_samples
from deemster.store import open_store
from deemster.view.run_cache import RunCache
from deemster.view.sample_query import SampleQuery, find_samples
from tests.view.conftest import SAMPLES


def ids(viewer, query):
    return [row["id"] for row in viewer.get(f"runs/after/samples?limit=500&{query}")["rows"]]


@pytest.fixture(scope="module")
def entries(numbers):
    return list(numbers[1][1].samples)


def known(entries, fits):
    return [entry.id for entry in entries if fits(entry)]


def test_rows_have_the_numbers_of_the_report(viewer, entries):
    rows = viewer.get("runs/after/samples?limit=500")["rows"]
    assert len(rows) == len(entries) == 24
    for row, entry in zip(rows, entries, strict=True):
        assert (row["id"], row["passed"], row["unstable"], row["unscored"]) == (
            entry.id,
            entry.pass_rate,
            entry.unstable,
            entry.unscored,
        )
        for name, spread in entry.metrics.items():
            assert (row["scores"][name]["score"], row["scores"][name]["stdev"]) == (spread.mean, spread.stdev)
    assert rows[5]["scores"]["rouge-l"]["cause"] == "target_failed"
    assert (rows[3]["latency_ms"], rows[3]["output_chars"]) == (30.0, len("It is 3."))
    assert rows[3]["preview"] == {"input": "How many is 3?", "expected": "It is 3.", "output": "It is 3."}


FILTERS = {
    "passed=yes": lambda entry: entry.passed == 2,
    "passed=no": lambda entry: entry.passed < 2,
    "metric=exact-match&passed=no": lambda entry: (entry.metrics["exact-match"].mean or 0) < 1,
    "unstable=yes": lambda entry: entry.unstable,
    "cause=target_failed": lambda entry: entry.id == "q05",
    "cause=any": lambda entry: entry.id == "q05",
    "only=tag:odd": lambda entry: "odd" in entry.tags,
    "only=" + quote("tag:(untagged)"): lambda entry: not entry.tags,
    "metric=rouge-l&min=0.1&max=0.7": lambda entry: 0.1 <= (entry.metrics["rouge-l"].mean or 0) <= 0.7,
    "only=author=bert": lambda entry: entry.id >= "q12",
    "only=author=ada&only=meta.level=3": lambda entry: entry.id < "q12" and int(entry.id[1:]) % 4 == 3,
    "only=author=ada&only=author=bert": lambda entry: True,
    "only=tag:odd&only=tag:small": lambda entry: not {"odd", "small"}.isdisjoint(entry.tags),
    "only=id:q0*&only=id:q17": lambda entry: entry.id < "q10" or entry.id == "q17",
    "only=failed": lambda entry: entry.passed < 2,
    "only=answered": lambda entry: entry.id != "q05",
    "only=" + quote("input.question=How many is 3?"): lambda entry: entry.id == "q03",
    "min_ms=100&max_ms=120": lambda entry: 10 <= int(entry.id[1:]) <= 12,
    "text=PERHAPS&in=output": lambda entry: (int(entry.id[1:]) % 4 == 1 and entry.id != "q05") or entry.id == "q08",
    "text=perhaps&in=input,expected": lambda entry: False,
    "text=passage%20about%203&in=passages": lambda entry: entry.id == "q03",
    "text=no%20answer%20for%20five&in=messages": lambda entry: entry.id == "q05",
    "text=q17": lambda entry: entry.id == "q17",
    "text=it%20is%207&in=expected&only=tag:small": lambda entry: entry.id == "q07",
}


@pytest.mark.parametrize("query", FILTERS)
def test_filter_gives_what_the_report_says(viewer, entries, query):
    wanted = known(entries, FILTERS[query])
    assert ids(viewer, query) == wanted
    assert viewer.get(f"runs/after/samples?limit=1&{query}")["matched"] == len(wanted)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort", ["rouge-l", "latency", "chars", "pass_rate", "id", "position"])
def test_order_puts_what_has_no_value_last(viewer, sort, order):
    rows = viewer.get(f"runs/after/samples?limit=500&sort={sort}&order={order}")["rows"]
    value = {
        "rouge-l": lambda row: row["scores"]["rouge-l"]["score"],
        "latency": lambda row: row["latency_ms"],
        "chars": lambda row: row["output_chars"],
        "pass_rate": lambda row: row["passed"],
    }.get(sort, lambda row: row[sort])
    values = [value(row) for row in rows]
    present = [each for each in values if each is not None]
    assert present == sorted(present, reverse=order == "desc")
    assert None not in values[: len(present)]
    assert len(rows) == len(SAMPLES)


def test_worst_are_those_that_a_report_shows_first(viewer, numbers):
    report = numbers[1][1]
    worst = [executed.sample.id for executed in worst_samples(report, len(SAMPLES))]
    assert ids(viewer, "passed=no&sort=worst") == worst
    assert len(worst) > 2


def test_pages_follow_each_other(viewer):
    whole = ids(viewer, "sort=rouge-l")
    parts = [viewer.get(f"runs/after/samples?sort=rouge-l&limit=7&offset={at}")["rows"] for at in range(0, 28, 7)]
    assert [row["id"] for part in parts for row in part] == whole


@pytest.mark.parametrize(
    "query",
    [
        "metric=rogue-l",
        "min=0.5",
        "metric=rouge-l&min=x",
        "sort=size",
        "order=up",
        "passed=maybe",
        "cause=odd",
        "only=odd",
        "only=failed:before",
        "in=notes",
        "limit=-1",
    ],
)
def test_bad_query_is_refused_with_a_sentence(viewer, query):
    answer = viewer.send(f"/api/runs/after/samples?{query}")
    assert answer.status == 400
    assert answer.message.endswith((".", "?"))


def test_metadata_is_shown_where_asked(viewer):
    row = viewer.get("runs/after/samples?limit=1&columns=meta.author,meta.level")["rows"][0]
    assert row["metadata"] == {"author": "ada", "level": 0}


@pytest.mark.parametrize(
    "text",
    [
        *('say "hi"', "back\\slash", "line\nend", "ÖL und Öl", "emoji 🙂", "tab\there"),
        *("100 %", "snake_case", "wow! %_!", "long " * 20_000),
    ],
)
def test_text_that_json_escapes_is_found(tmp_path, text):
    samples = [
        {"id": str(at), "input": {"q": said}, "expected_output": "x"}
        for at, said in enumerate((f"a {text} b", "other 100x snake-case wow _"))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dm.evaluate(samples, target=lambda given: "x", metrics=["exact-match"], storage=str(tmp_path / "runs.db"))
    with open_store(tmp_path / "runs.db") as store:
        run = RunCache(store).open("latest")
        for asked in (text, text.upper(), text.lower()):
            assert find_samples(run, SampleQuery(text=asked, fields=("input",))).tolist() == [0]
            assert find_samples(run, SampleQuery(text=asked, fields=("output", "id"))).tolist() == []
