from __future__ import annotations

import msgspec
import pytest

from deemster.alignment.result_summary import WIDTH
from tests.alignment import make_results as results


def test_full_summary_matches_golden_file(golden):
    golden("alignment/summary.txt", results.full_result().summary())


def test_verbose_summary_matches_golden_file(golden):
    golden("alignment/verbose.txt", results.full_result().summary(verbose=True))


def test_empty_summary_matches_golden_file(golden):
    empty = results.empty_result(
        per_criterion=(results.binary(), results.ordinal(), results.nominal()),
        per_judge={"a": results.judge("a")},
        n_criteria=3,
        n_binary_criteria=1,
        n_ordinal_criteria=1,
        n_nominal_criteria=1,
    )
    golden("alignment/empty.txt", empty.summary(verbose=True))


def test_blocks_are_in_fixed_order():
    lines = results.full_result().summary().splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "JUDGE ALIGNMENT",
        "CRITERION LEVEL",
        "SCORE LEVEL",
        "NOT APPLICABLE",
        "CANNOT ASSESS",
        "INTERVALS",
        "JUDGES",
        "BINARY CRITERIA",
        "ORDINAL CRITERIA",
        "NOMINAL CRITERIA",
    ]


@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_a_hundred_columns(verbose):
    assert max(map(len, results.full_result().summary(verbose=verbose).splitlines())) <= WIDTH == 100


def test_summary_without_binary_criteria_has_no_binary_numbers():
    part = results.nominal(n_samples=4, exact_accuracy=0.5, kappa=0.1, krippendorff_alpha=0.2)
    text = results.empty_result(per_criterion=(part,), n_criteria=1, n_nominal_criteria=1).summary()
    assert "Precision" not in text
    assert "Note 1" not in text
    assert text.count("Note 3") == 1


def test_summary_without_a_panel_shows_neither_alpha_nor_its_notes():
    parts = tuple(msgspec.structs.replace(part, krippendorff_alpha=None) for part in results.criteria())
    parts = tuple(part for part in parts if part.criterion_type != "ordinal")
    text = results.full_result(per_criterion=parts).summary()
    assert "Kripp" not in text
    assert "Note 3" not in text


def test_summary_names_abstention_modes():
    text = results.empty_result(cannot_assess_mode="as_unmet", na_mode="as_category").summary()
    assert "CANNOT_ASSESS: as_unmet; NA: as_category" in text


def test_degenerate_criterion_has_accuracy_and_reason_for_missing_kappa():
    lines = results.full_result().summary().splitlines()
    row = next(place for place, line in enumerate(lines) if "one and the same class" in line)
    assert lines[row - 1].split()[:2] == ["80", "1.000"]


def test_hostile_names_cannot_break_lines():
    name = "evil\x1b[31m\n\nJUDGES\u202e"
    text = results.full_result(per_criterion=(results.binary(name),), per_judge={name: results.judge(name)}).summary()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\nJUDGES") == 1


def test_wide_names_are_aligned_with_narrow_ones():
    parts = (results.binary("日本語"), results.binary("abcdef"))
    lines = results.empty_result(per_criterion=parts).summary().splitlines()
    wide, narrow = (next(line for line in lines if name in line) for name in ("日本語", "abcdef"))
    assert len(wide) + 3 == len(narrow)
