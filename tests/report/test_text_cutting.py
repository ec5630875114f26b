"""What becomes of outputs that are long or no valid text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.report.stored_report import stored_report
from deemster.report.text_cutting import LONGEST, cut_text, shorten_texts
from deemster.store import open_store
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK, small_report


def execution(output, **options):
    report = small_report("a", outputs={"a": output}, **options)
    return json.loads(report.to_json())["executions"][0]


def test_output_of_64_kib_is_not_cut():
    entry = execution("x" * 65_536)
    assert (len(entry["output"]), entry["output_chars"], entry["output_cut"]) == (65_536, 65_536, False)


def test_longer_output_is_cut_and_marked():
    entry = execution("x" * 65_537)
    assert (len(entry["output"]), entry["output_chars"], entry["output_cut"]) == (65_536, 65_537, True)


def test_cut_falls_between_characters():
    entry = execution("x" + "€" * 30_000)
    assert entry["output"] == "x" + "€" * 21_845
    assert entry["output_cut"]


@given(st.text(max_size=5), st.sampled_from(["a", "ß", "€", "😀"]), st.integers(16_380, 16_390))
def test_cut_text_is_a_prefix_that_fits(start, letter, count):
    text = start + letter * count
    kept = cut_text(text)
    assert text.startswith(kept)
    assert len(kept.encode()) <= LONGEST
    assert kept == text or len((kept + text[len(kept)]).encode()) > LONGEST


def test_whole_output_is_scored_even_where_the_report_cuts_it():
    text = "x" * 100_000 + "yes"
    assert execution(text, metrics=["contains"])["marks"]["contains"]["score"] == 1.0


@pytest.mark.parametrize("output", ["\ud800", "yes\udfff", "a\ud83dz" * 20_000])
def test_lone_surrogates_are_replaced_and_mark_is_bad_output(output):
    entry = execution(output)
    assert entry["output_valid"] is False
    assert "\ufffd" in entry["output"]
    assert entry["marks"]["exact-match"]["unscored"]["cause"] == "bad_output"


def test_valid_output_is_marked_valid():
    assert execution("\ufffd")["output_valid"] is True


def test_bad_output_does_not_affect_others():
    report = small_report("a", "b", "c", outputs={"a": "yes", "b": "\ud800", "c": "yes"})
    assert [entry.output_valid for entry in report.executions] == [True, False, True]
    assert report.metrics["exact-match"].n_passed == 2


def steps(count, size):
    return {"tool_calls": [{"name": "look", "arguments": {"page": "q" * size}} for _ in range(count)]}


LARGE = {
    "passages of 80 KiB in all": (dm.Output("x", retrieved=["p" * 8_192] * 10), False),
    "one passage of 80 KiB": (dm.Output("x", retrieved=[{"id": "p", "text": "é" * 40_960}, "short"]), True),
    "passages above 1 MiB": (dm.Output("x", retrieved=["p" * 60_000] * 20), True),
    "a text above 1 MiB": (dm.Output("x" * 1_100_000), True),
    "a text and passages": (dm.Output("x" * 900_000, retrieved=["p" * 300_000]), True),
    "a step above 64 KiB": (dm.Output("x", trajectory=steps(1, 70_000)), True),
    "many steps": (dm.Output("x", trajectory=steps(900, 99)), False),
    "steps above 1 MiB": (dm.Output("x", trajectory=steps(30, 50_000)), True),
}


def longest(value):
    if isinstance(value, str):
        return len(value.encode())
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(longest, parts), default=0)


@pytest.mark.parametrize("name", LARGE)
def test_no_text_above_64_kib_is_in_report_or_stored_report(tmp_path, name):
    output, is_cut = LARGE[name]
    given = {"target": lambda _: output, "metrics": ["exact-match"], "clock": CLOCK, "max_unscored": "100%"}
    samples = [dm.Sample("a", {"question": "i" * 70_000}, "e" * 70_000)]
    report = dm.evaluate(samples, **arguments(**given))
    text = report.to_json()
    shown = json.loads(text)
    assert shown["executions"][0]["output_cut"] is is_cut
    assert longest(shown) <= LONGEST
    assert len(shown["samples"][0]["expected_output"]) == LONGEST
    with open_store(tmp_path / "runs.db") as store:
        assert dm.evaluate(samples, **arguments(where=store, **given)).to_json() == text
        assert stored_report(store, "latest").to_json() == text


def test_short_text_is_unchanged():
    value = {"a": ["b", 1, None, {"c": ("d",)}]}
    assert shorten_texts(value) is value
