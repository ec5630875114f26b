from __future__ import annotations

import msgspec

from tests.agreement import make_results as results


def test_full_summary_matches_golden_file(golden):
    golden("alignment/summary.txt", results.full_result().summary())


def test_empty_summary_matches_golden_file(golden):
    empty = results.empty_result(
        per_criterion=(results.binary(), results.ordinal(), results.nominal()),
        per_judge={"a": results.judge("a")},
        n_criteria=3,
        n_binary_criteria=1,
        n_ordinal_criteria=1,
        n_nominal_criteria=1,
    )
    golden("alignment/empty.txt", empty.summary())


def test_summary_has_every_section_in_order():
    result = results.full_result()
    lines = result.summary().splitlines()
    places = [lines.index("".join(section.title)) for section in result.sections()]
    assert places == sorted(places)
    assert places[0] == 0


def test_no_line_of_a_table_is_wider_than_a_hundred_columns():
    assert max(map(len, results.full_result().summary().splitlines())) <= 100


def test_summary_without_binary_criteria_has_no_binary_numbers():
    part = results.nominal(n_samples=4, exact_accuracy=0.5, kappa=0.1, krippendorff_alpha=0.2)
    text = results.empty_result(per_criterion=(part,), n_criteria=1, n_nominal_criteria=1).summary()
    assert "precision" not in text
    assert "For two classes phi" not in text
    assert text.count("Without an order of the labels alpha") == 1


def test_summary_without_a_panel_has_no_note_on_alpha():
    parts = tuple(msgspec.structs.replace(part, krippendorff_alpha=None) for part in results.criteria())
    parts = tuple(part for part in parts if part.criterion_type != "ordinal")
    text = results.full_result(per_criterion=parts).summary()
    assert "Without an order of the labels alpha" not in text


def test_summary_names_abstention_modes():
    text = results.empty_result(cannot_assess_mode="as_unmet", na_mode="as_category").summary()
    assert "CANNOT_ASSESS are handled as `as_unmet`, NA options as `as_category`" in text


def test_hostile_names_cannot_break_lines():
    name = "evil\x1b[31m\n\nJudges\u202e"
    text = results.full_result(per_criterion=(results.binary(name),), per_judge={name: results.judge(name)}).summary()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\nJudges\n") == 1
