"""The rubric by which a judge examines rubrics."""

from __future__ import annotations

from deemster.rubrics import Rubric
from deemster.rubrics.meta_rubric import ADVICE, HINTS, MEANING, exams, meta_rubric
from deemster.rubrics.rubric_check import check_rubric

RUBRIC = Rubric.parse("""\
guidelines: Judge the letter alone.
criteria:
  - { name: thanks, requirement: The letter thanks its reader. }
  - { name: rude, weight: -5, requirement: It insults somebody., fatal: true }
  - name: depth
    requirement: How many causes does it name?
    options: [{ label: none, value: 0 }, { label: one, value: 0.5 }, { label: n/a, na: true }, { label: two, value: 1 }]
  - { name: short, requirement: It is short., check: { metric: length-within, args: { max_words: 9 } } }
""")


def test_every_criterion_of_the_meta_rubric_has_advice():
    assert set(meta_rubric("criterion", "options", "whole").names) == ADVICE.keys() == MEANING.keys()
    assert ADVICE.keys() >= HINTS


def test_meta_rubric_passes_its_own_check_of_words():
    for part in ("criterion", "options", "whole"):
        found = [issue for issue in check_rubric(meta_rubric(part)) if issue.severity == "warning"]
        assert found == []


def test_options_are_examined_and_check_criteria_are_skipped():
    shown = list(exams(RUBRIC))
    assert [exam.place for exam in shown] == [None, 0, 1, 2]
    assert shown[1].rubric == meta_rubric("criterion")
    assert shown[3].rubric == meta_rubric("criterion", "options")


def test_criterion_is_shown_with_everything_that_belongs_to_it():
    whole, _, rude, depth = (exam.text for exam in exams(RUBRIC))
    assert "Judge the letter alone." in rude
    assert "`rude`: a fault, which takes away 5 points. A submission that fails it gets no points at all." in rude
    assert depth.endswith("- none (value 0)\n- one (value 0.5)\n- n/a (no verdict)\n- two (value 1)")
    assert all(f"`{name}`" in whole for name in RUBRIC.names)
    assert "Answered by the metric length-within" in whole


def test_rubric_of_one_criterion_has_no_whole_rubric_questions():
    assert [exam.place for exam in exams(Rubric.parse("- { name: a, requirement: It rhymes. }"))] == [0]
