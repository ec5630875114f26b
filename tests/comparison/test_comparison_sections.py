import re
import xml.etree.ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from rich.cells import cell_len

import deemster as dm
from deemster.comparison.comparison_comment import comparison_comment
from deemster.comparison.comparison_sections import comparison_sections
from deemster.results.compared_numbers import UsageComparison
from deemster.results.difference_origin import DifferenceOrigin, JudgeDrift
from deemster.stats import Interval
from tests.builders.printed import printed
from tests.report.comparisons import compared, evaluated, helpdesk, hostile
from tests.report.test_report_sections import MARKDOWN, NAMES, QUICK, parsed

RIGHT, WRONG = "right", "wrong"


def answers(right, total=60):
    return {f"q{place:02d}": RIGHT if place < right else WRONG for place in range(total)}


def shown(comparison, *, full=False, width=120):
    return printed(comparison_sections(comparison, full=full), width=width, highlight=False)


@pytest.mark.parametrize(
    ("before", "after", "margin", "samples", "moved", "interval", "allowed"),
    [
        (
            *(60, 30, None, "30 samples broke (q30, q31, q32, q33 and 26 more), none was fixed."),
            *("fell from 100.0 % to 50.0 %, by more than chance explains:", "-63.0 to -37.0", ""),
        ),
        (
            *(58, 60, None, "2 samples were fixed (q58 and q59), none broke."),
            *("rose from 96.7 % to 100.0 %, which may be chance:", "-4.7 to +12.3", ""),
        ),
        (
            *(60, 60, None, "No sample broke, and none was fixed."),
            *("stayed at 100.0 %;", "-7.0 to +7.0", ""),
        ),
        (
            *(60, 60, 0.2, "No sample broke, and none was fixed."),
            *("stayed at 100.0 %;", "-7.0 to +7.0", " A drop of more than the 20.0 points allowed is ruled out."),
        ),
        (
            *(60, 20, 0.2, "40 samples broke (q20, q21, q22, q23 and 36 more), none was fixed."),
            *("fell from 100.0 % to 33.3 %;", "-78.9 to -53.1", " The drop is more than the 20.0 points allowed."),
        ),
        (
            *(60, 50, 0.2, "10 samples broke (q50, q51, q52, q53 and 6 more), none was fixed."),
            *("fell from 100.0 % to 83.3 %;", "-28.9 to -5.2"),
            " A drop of more than the 20.0 points allowed is neither shown nor ruled out.",
        ),
    ],
)
def test_first_lines_say_what_became_of_samples_and_what_that_means(
    before, after, margin, samples, moved, interval, allowed
):
    comparison = compared(answers(before), answers(after), margin=margin)
    found = f"the 95% interval of the change, from 60 samples, is {interval} points.{allowed}"
    meaning = f"The mean pass-rate {moved} {found}"
    assert shown(comparison, width=400).splitlines()[:2] == [samples, meaning]
    assert comparison.verdict == f"{samples} {meaning}"


def test_samples_that_broke_and_that_were_fixed_stand_in_one_sentence():
    before = {"a": RIGHT, "b": WRONG, "c": RIGHT}
    verdict = compared(before, {"a": WRONG, "b": RIGHT, "c": RIGHT}).verdict
    assert verdict.startswith("1 sample broke (a), and 1 was fixed (b). ")


def test_share_that_passes_every_metric_is_told_where_the_mean_does_not_show_its_change():
    def report(outputs):
        samples = [{"id": f"q{n}", "input": {"n": n}, "expected_output": None} for n in range(20)]
        metrics = [{"regex": {"pattern": word, "name": word}} for word in ("red", "green", "blue")]
        return dm.evaluate(samples, outputs={f"q{n}": text for n, text in enumerate(outputs)}, metrics=metrics)

    broken = [*["red green"] * 4, *["red blue"] * 4, *["green blue"] * 4]
    verdict = dm.compare(report([*broken, *["red green blue"] * 8]), report(["red green blue"] * 20)).verdict
    assert "The mean pass-rate rose from 80.0 % to 100.0 %, which may be chance" in verdict
    assert re.search(
        r"But the share of outputs that pass every metric rose by \d+\.\d to \d+\.\d points, by more", verdict
    )


def test_one_sample_may_always_be_chance():
    verdict = compared({"a": RIGHT}, {"a": WRONG}).verdict
    assert "from 100.0 % to 0.0 %, which may be chance: " in verdict
    assert verdict.endswith("from 1 sample, is -100.0 to +92.4 points.")


def test_runs_without_a_common_metric_are_not_compared():
    comparison = dm.compare(*(evaluated({"a": RIGHT}, metrics=[name]) for name in ("exact-match", "rouge-l")))
    assert comparison.verdict == "Nothing can be compared: no metric is the same in both runs."
    text = shown(comparison)
    assert "Not compared: rouge-l: only the candidate has it." in text
    assert 'role="img"' not in comparison.to_html()


def test_changed_metric_says_what_differs():
    reports = [evaluated({"a": RIGHT}, metrics=[{"rouge-l": {"threshold": mark}}]) for mark in (0.5, 0.7)]
    assert "its threshold was 0.5, and is 0.7" in shown(dm.compare(*reports), width=400)


def test_two_negative_ends_can_be_read():
    assert re.search(r"-0\.\d{4} to -0\.\d{4}", shown(compared(answers(60), answers(30))))


def test_tiny_p_value_is_not_zero():
    assert "<0.0001" in shown(compared(answers(60), answers(20)))
    assert " 0.0000   " not in shown(compared(answers(60), answers(20))).split("Macro-F1 by cohort")[0].split("p   ")[1]


def test_narrow_form_leaves_details_to_the_full_one():
    for title in ("Effects and resolution", "Pass and fail, before and now"):
        assert title not in shown(helpdesk())
        assert title in shown(helpdesk(), full=True)
        assert title in helpdesk().to_markdown()


def test_details_have_mcnemar_tango_shares_and_resolution():
    text = shown(helpdesk(), full=True, width=400)
    for word in ("McNemar p", "mid-p", "Tango interval", "better", "certifies", "if unchanged", "finds a drop of"):
        assert word in text


def test_broken_sample_shows_question_expected_and_both_answers():
    text = shown(helpdesk())
    broken = text[text.index("Samples that broke: 2") : text.index("Samples that were fixed: 1")]
    assert "input: What of refunds-00?" in broken
    assert "expected: It takes 3 days to get the money back." in broken
    assert "output, before to now: It takes [-3 -]{+30 +}days to get the money back." in broken
    assert "output now: Ask the help desk." in broken
    assert "exact-match: 1.0000 to 0.0000, passes with >= 0.5" in broken


def test_reasons_of_both_marks_are_shown():
    example = helpdesk().examples[0]
    sides = {}
    for side, reason in (("baseline", "It is right."), ("candidate", "It is wrong.")):
        entry = getattr(example, side)
        mark = msgspec.structs.replace(entry.marks["exact-match"], details={"judge_reason": reason})
        sides[side] = msgspec.structs.replace(entry, marks={**entry.marks, "exact-match": mark})
    judged = msgspec.structs.replace(helpdesk(), examples=(msgspec.structs.replace(example, **sides),))
    assert "reason, before: It is right." in shown(judged)
    assert "reason, now: It is wrong." in shown(judged)


def test_drift_of_a_judge_is_a_warning():
    drift = JudgeDrift(n=40, changed=12, difference=0.05, p_value=0.002, drifted=True)
    metrics = dict(helpdesk().metrics)
    metrics["rouge-l"] = msgspec.structs.replace(metrics["rouge-l"], drift=drift)
    text = shown(msgspec.structs.replace(helpdesk(), metrics=metrics), width=200)
    told = "12 of 40 outputs that did not change have another score, on average +0.0500 (p 0.0020)."
    assert f"Warning: the judge drifted: rouge-l: {told}" in text


def test_origin_is_a_sentence_for_one_part_and_a_table_for_several():
    assert "All of it: outputs that changed." in shown(compared(answers(60), answers(30)))
    mixed = DifferenceOrigin(total=-0.03, outputs=-0.02, judge=-0.01, unscored=0.0, dataset=0.0)
    text = shown(msgspec.structs.replace(helpdesk(), macro_f1_origin=mixed))
    assert "outputs: outputs that changed; judge: other scores of equal outputs" in text


def test_usage_shows_cost_for_each_pass():
    cost = UsageComparison(
        n=40,
        baseline=0.002,
        candidate=0.004,
        difference=0.002,
        interval=Interval(0.001, 0.003),
        baseline_per_pass=0.0025,
        candidate_per_pass=0.008,
    )
    text = shown(msgspec.structs.replace(helpdesk(), usage={"cost_usd": cost}))
    assert re.search(r"cost in USD +0\.0020 +0\.0040 +0\.0020 +0\.0010 to 0\.0030 +0\.0025 +0\.0080", text)


def test_statuses_without_a_sample_are_left_out():
    text = shown(helpdesk())
    assert "broke             2" in text
    assert "scored now" not in text


TEXT = {"code", "details", "summary", "del", "ins"}


def renamed(name):
    """The comparison of the help desk, with one text in every place that holds text from data."""
    replace = msgspec.structs.replace
    comparison = helpdesk()

    def keys(table):
        return {name if key == "rouge-l" else key: value for key, value in table.items()}

    def side(entry):
        return replace(entry, output=f"{entry.output} {name}", marks=keys(entry.marks))

    return replace(
        comparison,
        baseline=replace(comparison.baseline, label=name, target=name),
        metrics=keys(comparison.metrics),
        warnings=(name,),
        not_comparable={name: name},
        cohorts=tuple(replace(cohort, label=name) for cohort in comparison.cohorts),
        changes=[
            replace(
                change,
                baseline=change.baseline and replace(change.baseline, id=name, failed=(name,)),
                candidate=change.candidate and replace(change.candidate, id=name, scores=keys(change.candidate.scores)),
            )
            for change in comparison.changes
        ],
        examples=tuple(
            replace(
                example,
                id=name,
                tags=(name,),
                input=name,
                expected_output=name,
                baseline=side(example.baseline),
                candidate=side(example.candidate),
            )
            for example in comparison.examples
        ),
    )


@pytest.mark.parametrize("flavour", ["md", "github"])
@QUICK
@given(name=NAMES)
def test_hostile_text_makes_no_element_in_markdown(flavour, name):
    text = b"".join(renamed(name).forms()[flavour]()).decode()
    page = parsed(MarkdownIt("commonmark").enable("table").render(text))
    assert page.elements <= MARKDOWN | TEXT
    assert page.attributes == set()
    assert page.odd == []


SVG = {"figure", "figcaption", "svg", "title", "desc", "g", "line", "circle", "text", "header", "nav", "main", "footer"}


@QUICK
@given(name=NAMES)
def test_hostile_text_makes_no_element_or_attribute_in_the_page(name):
    page, plain = (parsed(renamed(text).to_html()) for text in (name, "plain"))
    assert page.elements == plain.elements
    assert {(tag, key) for tag, key, _ in page.attributes} == {(tag, key) for tag, key, _ in plain.attributes}
    assert page.elements >= SVG
    assert page.odd == []


@QUICK
@given(name=NAMES)
def test_junit_is_xml_for_any_text(name):
    root = ET.fromstring(b"".join(renamed(name).forms()["junit"]()))
    assert {element.tag for element in root.iter()} <= {"testsuites", "testsuite", "testcase", "skipped", "failure"}


def test_no_attack_reaches_a_page_or_a_terminal():
    page = hostile().to_html()
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in shown(hostile(), full=True)
    assert "\n::" not in shown(hostile(), full=True)


def test_plots_say_what_they_show_and_are_well_formed():
    for comparison in (helpdesk(), hostile()):
        figures = [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", comparison.to_html(), re.DOTALL)]
        drawings = [root for root in figures if root.get("role") == "img"]
        assert len(drawings) > 4
        assert all(root[0].tag.endswith("}title") and root[0].text for root in drawings)
        # Only the labels of a scale, which the title of each row repeats, are hidden from a screen reader.
        assert all(root.get("aria-hidden") == "true" for root in figures if root not in drawings)
        named = [root for root in drawings if root.get("aria-labelledby")]
        assert len(named) == 1
        assert [child.get("id") for child in named[0]][:2] == named[0].get("aria-labelledby").split()


def test_plot_of_samples_draws_every_changed_sample_once():
    page = helpdesk().to_html()
    counts = [int(count) for count in re.findall(r"<title>(\d+) samples?: ", page)]
    # Added and removed samples have one side only.
    assert sum(counts) == 4
    assert "4 samples that changed; 34 that did not are not drawn." in page


def test_change_of_a_mean_score_has_its_bounds_where_scores_are_missing():
    before = {"gone": "right", "worse": "right so", "kept": "right"}
    after = {**before, "gone": {"error": "down"}, "worse": "so right it is"}
    comparison = compared(before, after, metrics=("token-f1",))
    assert "token-f1: whatever the missing scores are, its change lies in -0.4222 to -0.0889." in shown(comparison)
    assert "whatever the missing scores" not in shown(helpdesk())


def test_sample_without_an_answer_is_newly_failing_and_says_why():
    before = {"gone": "right", "broken": "right", "kept": "right"}
    comparison = compared(before, {**before, "gone": {"error": "no route to host"}, "broken": "wrong"})
    assert comparison.statuses["newly_failing"] == comparison.table.newly_failing == 2
    comment = comparison_comment(comparison)
    assert "Samples that broke: 2" in comment
    assert "1.0000 to target_failed: <code>no route to host</code>" in comment
    page = comparison.to_html()
    assert "1 sample that changed; 1 that did not, and 1 without a score in one run, are not drawn." in page


@pytest.mark.parametrize("width", [80, 120])
def test_comparison_matches_golden_file_in_a_wide_and_a_narrow_terminal(golden, width):
    text = shown(helpdesk(), full=True, width=width)
    golden(f"report/comparison-{width}.txt", text)
    # The first line is the verdict, which is printed whole.
    assert max(map(cell_len, text.splitlines()[1:])) <= width
    wide = shown(helpdesk(), full=True, width=400)
    assert set(re.findall(r"\d+\.\d{4}", text)) <= set(re.findall(r"\d+\.\d{4}", wide))
