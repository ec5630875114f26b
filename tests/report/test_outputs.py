"""What becomes of outputs that are long or no valid text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.report.assembly import LONGEST, cut
from tests.report.runs import small_report


def execution(output, **options):
    report = small_report("a", outputs={"a": output}, **options)
    return json.loads(report.to_json())["executions"][0]


def test_an_output_of_64_kib_is_whole():
    entry = execution("x" * 65_536)
    assert (len(entry["output"]), entry["output_chars"], entry["output_cut"]) == (65_536, 65_536, False)


def test_a_longer_output_is_cut_and_says_so():
    entry = execution("x" * 65_537)
    assert (len(entry["output"]), entry["output_chars"], entry["output_cut"]) == (65_536, 65_537, True)


def test_the_cut_falls_between_characters():
    entry = execution("x" + "€" * 30_000)
    assert entry["output"] == "x" + "€" * 21_845
    assert entry["output_cut"]


@given(st.text(max_size=5), st.sampled_from(["a", "ß", "€", "😀"]), st.integers(16_380, 16_390))
def test_cut_text_is_a_prefix_that_fits(start, letter, count):
    text = start + letter * count
    kept = cut(text)
    assert text.startswith(kept)
    assert len(kept.encode()) <= LONGEST
    assert kept == text or len((kept + text[len(kept)]).encode()) > LONGEST


def test_the_whole_output_is_scored_even_where_the_report_cuts_it():
    text = "x" * 100_000 + "yes"
    assert execution(text, metrics=["contains"])["marks"]["contains"]["score"] == 1.0


@pytest.mark.parametrize("output", ["\ud800", "yes\udfff", "a\ud83dz" * 20_000])
def test_lone_surrogates_become_the_replacement_character_and_the_mark_says_bad_output(output):
    entry = execution(output)
    assert entry["output_valid"] is False
    assert "\ufffd" in entry["output"]
    assert entry["marks"]["exact-match"]["unscored"]["cause"] == "bad_output"


def test_a_valid_output_is_said_to_be_one():
    assert execution("\ufffd")["output_valid"] is True


def test_a_bad_output_does_not_touch_its_neighbours():
    report = small_report("a", "b", "c", outputs={"a": "yes", "b": "\ud800", "c": "yes"})
    assert [entry.output_valid for entry in report.executions] == [True, False, True]
    assert report.metrics["exact-match"].n_passed == 2
