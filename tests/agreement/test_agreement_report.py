from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from deemster.agreement.agreement_report import agreement_sections, short_agreement_sections
from deemster.text.markdown_layout import render_markdown
from tests.agreement import make_results as results
from tests.builders.printed import printed

HOSTILE = "<img src=x onerror=alert(1)>|`a`\n# [x](https://evil.example) ![y](z) **b** @all $$"


def alignment_markdown(result):
    return render_markdown(agreement_sections(result))


def trusted(**changes):
    """A result without reservations, except the given changes."""
    facts = msgspec.structs.replace(results.criteria()[0], kappa=0.8)
    kappa = results.resampled(0.8, 0.7, 0.9)
    fields = {"per_criterion": (facts,), "n_criteria": 1, "n_binary_criteria": 1, "n_samples": 80, "n_items": 80}
    fields |= {"mean_kappa": 0.8, "intervals": {"mean_kappa": kappa}, "coverage_stats": results.coverage(82, 80)}
    return results.empty_result(**(fields | changes))


def test_markdown_matches_golden_file(golden):
    golden("alignment/report.md", alignment_markdown(results.full_result()))


def test_terminal_form_matches_golden_file(golden):
    golden("alignment/terminal.txt", printed(agreement_sections(results.full_result())))


def test_markdown_of_empty_result_matches_golden_file(golden):
    golden("alignment/empty.md", alignment_markdown(results.empty_result()))


def rows(result):
    """The lines of all tables, as lists of cells."""
    lines = (line for line in alignment_markdown(result).splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_slice_shows_the_interval_of_its_difference_where_there_is_one():
    (one,) = results.additions()["slices"]
    known = {"kappa_difference": results.resampled(-0.1, -0.2, -0.05)}
    sure = msgspec.structs.replace(one, tag="sure", intervals=known)
    (head,) = [row for row in rows(trusted(slices=(one,))) if row[0] == "slice"]
    assert head[5:] == ["minus the rest", "RMSE", "bias"]
    head, *told = rows(trusted(slices=(one, sure)))[-3:]
    assert head[5:] == ["minus the rest", "interval", "RMSE", "bias"]
    assert [row[5:7] for row in told] == [["-0.2000", "n/a"], ["-0.2000", "-0.2000 to -0.0500"]]


def test_recorded_verdicts_differing_from_only_judge_have_own_line():
    human = results.additions()["human"]
    same = msgspec.structs.replace(human, panel=msgspec.structs.replace(human.judges[0], name="panel"))
    who = [[row[:2] for row in rows(trusted(human=one, n_judges=1))[-3:]] for one in (same, human)]
    person, judge = ["person", "<code>ann</code>"], ["judge", "<code>steady</code>"]
    assert who == [[["who", "name"], person, judge], [person, ["final", "verdicts"], judge]]
    assert "panel" not in alignment_markdown(trusted(human=human, n_judges=1))
    assert rows(trusted(human=human, n_judges=2))[-2][:2] == ["panel", "<code>panel</code>"]


def test_answer_comes_before_numbers():
    lines = alignment_markdown(results.full_result()).splitlines()
    assert lines[0] == "# Judge agreement"
    assert lines[2] == "Can this judge be trusted? With care."
    assert lines[4] == (
        "Why: the interval of mean kappa begins at 0.4519, below 0.61; 1 criterion below 0.41; 2 criteria without a "
        "kappa; 0 labels of <code>MET</code> on <code>the answer never repeats itself, and never repeats what the "
        "question has already said in other words</code>, fewer than 10; coverage is below 80.0 %."
    )


CASES = {
    "a sure and substantial kappa": ({}, "Yes, as far as these labels show."),
    "a kappa without an interval": ({"intervals": None}, "These labels give no answer."),
    "a class with nine labels": (
        {"per_criterion": (results.binary(n_samples=80, support_true=9, kappa=0.8),)},
        "With care.",
    ),
    "annotators who are tied on more than a tenth of the cells": (
        {"human": msgspec.structs.replace(results.additions()["human"], n_labelled_cells=9)},
        "With care.",
    ),
    "an interval that begins at moderate": (
        {"intervals": {"mean_kappa": results.resampled(0.8, 0.5, 0.9)}},
        "With care.",
    ),
    "an interval that begins at fair": ({"intervals": {"mean_kappa": results.resampled(0.8, 0.3, 0.9)}}, "Not yet."),
    "a weak criterion": ({"per_criterion": (results.binary(n_samples=9, kappa=0.1),)}, "With care."),
    "a criterion without a kappa": ({"per_criterion": (results.binary(n_samples=9),)}, "With care."),
    "a large bias": (
        {"bias": results.bias(0.2, effect_size=0.9, is_significant=True, p_value=0.01, direction="positive")},
        "With care.",
    ),
    "a small bias": (
        {"bias": results.bias(0.01, effect_size=0.1, is_significant=True, p_value=0.01, direction="positive")},
        "Yes, as far as these labels show.",
    ),
    "many pairs left out": ({"coverage_stats": results.coverage(200, 80)}, "With care."),
    "few items, on which an interval has no width": (
        {"n_items": 29, "intervals": {"mean_kappa": results.resampled(1.0, 1.0, 1.0)}},
        "With care.",
    ),
    "enough items": ({"n_items": 30}, "Yes, as far as these labels show."),
    "few clusters": ({"warnings": ("few-clusters: 3 clusters only.",)}, "With care."),
    "no kappa at all": ({"mean_kappa": None, "intervals": None}, "These labels give no answer."),
}


@pytest.mark.parametrize("case", CASES)
def test_answer_follows_the_rule(case):
    changes, answer = CASES[case]
    assert f"Can this judge be trusted? {answer}\n" in alignment_markdown(trusted(**changes))


def test_weakest_criterion_is_first_and_undefined_ones_are_last():
    text = alignment_markdown(results.full_result())
    rows = [line for line in text.partition("## Criteria")[2].splitlines() if line.startswith("| <code>")]
    assert [row.split("<code>")[1].split("</code>")[0][:5] for row in rows[:5]] == [
        "depth",
        "tone",
        "facts",
        "the a",
        "never",
    ]
    assert "do not rely on it" in rows[0]
    assert "do not rely on it" not in rows[1]


def test_every_warning_is_shown():
    shown = alignment_markdown(results.full_result())
    assert shown.count("**Warning: ") == 2
    assert "failed-cells: 9 votes failed" in shown


def test_long_warning_is_not_cut():
    words = " ".join(f"criterion-{place}" for place in range(60))
    shown = alignment_markdown(results.empty_result(warnings=(f"degenerate: {words}.",)))
    assert all(f"criterion-{place}" in shown for place in range(60))


def hostile(name):
    return results.full_result(
        per_criterion=(results.binary(name, n_samples=3, kappa=0.1), results.ordinal(name), results.nominal(name)),
        per_judge={name: results.judge(name)},
        slices=(msgspec.structs.replace(results.additions()["slices"][0], tag=name),),
        items=(msgspec.structs.replace(results.additions()["items"][0], id=name),),
        warnings=(f"degenerate: {name}",),
    )


@pytest.mark.parametrize("name", [HOSTILE, "| a | b |", "\x1b[31mred", "::error::x", "\u202eevil", "", "a" * 5000])
def test_hostile_names_stay_text(name):
    tokens = MarkdownIt("commonmark").enable("table").parse(alignment_markdown(hostile(name)))
    tables = [token for token in tokens if token.type == "table_open"]
    plain = MarkdownIt("commonmark").enable("table").parse(alignment_markdown(hostile("x")))
    assert len(tables) == sum(token.type == "table_open" for token in plain)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline}.isdisjoint({"link_open", "image", "em_open"})
    assert {child.content for child in inline if child.type == "html_inline"} <= {"<code>", "</code>"}
    shown = printed(agreement_sections(hostile(name)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "::error" not in shown


@given(st.text(max_size=60))
def test_any_name_keeps_table_rows_intact(name):
    def cells(text):
        return [line.count("|") for line in alignment_markdown(hostile(text)).splitlines() if line.startswith("|")]

    assert cells(name) == cells("x")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_narrow_terminal_cuts_no_number(width):
    assert "0.3912" in printed(agreement_sections(results.full_result()), width=width)


@pytest.mark.parametrize(("labels", "shown"), [(4, "almost perfect; 4 labels of MET"), (5, "almost perfect")])
def test_kappa_that_rests_on_few_labels_of_a_class_has_their_number_beside_it(labels, shown):
    rare = results.binary(n_samples=80, support_true=labels, kappa=0.9)
    text = alignment_markdown(msgspec.structs.replace(results.full_result(), per_criterion=(rare,)))
    row = next(line for line in text.partition("## Criteria")[2].splitlines() if line.startswith("| <code>"))
    assert row.rstrip(" |").removesuffix("</code>").endswith(shown)


def short(result, *, width=120):
    return printed(short_agreement_sections(result, more="All tables: --full."), width=width)


@pytest.mark.parametrize("width", [120, 80])
def test_short_form_has_answer_ceiling_weakest_criteria_and_next_steps(golden, width):
    golden(f"alignment/short-{width}.txt", short(results.full_result(), width=width))


def test_short_form_of_nothing_gives_no_answer_and_says_what_is_missing(golden):
    golden("alignment/short-empty.txt", short(results.empty_result()))


@pytest.mark.parametrize("case", CASES)
def test_every_answer_has_a_next_step(case):
    changes, answer = CASES[case]
    steps = short(trusted(**changes)).partition("What to do next\n")[2]
    assert steps.startswith("- ")
    assert ("Use the judge." in steps) == answer.startswith("Yes")


def test_more_labels_are_advised_only_where_they_may_help():
    reaching = {"intervals": {"mean_kappa": results.resampled(0.8, 0.5, 0.9)}}
    assert "so more labels may settle it" in short(trusted(**reaching))
    below = {"intervals": {"mean_kappa": results.resampled(0.5, 0.45, 0.55)}}
    assert "More labels will not help: the whole interval lies below 0.61." in short(trusted(**below))


def test_full_form_in_a_narrow_terminal_breaks_no_number(golden):
    narrow, wide = (printed(agreement_sections(results.full_result()), width=width) for width in (80, 120))
    golden("alignment/terminal-80.txt", narrow)
    assert max(map(cell_len, narrow.splitlines())) <= 80
    assert set(re.findall(r"\d+\.\d{4}", narrow)) <= set(re.findall(r"\d+\.\d{4}", wide))


def test_few_items_are_the_first_thing_to_mend_whatever_the_answer_is():
    low = {"n_items": 4, "intervals": {"mean_kappa": results.resampled(0.8, 0.1, 0.9)}}
    steps = short(trusted(**low)).partition("What to do next\n")[2]
    assert steps.startswith("- Label at least 30 items; there are 4.")
