import re

import msgspec
import pytest
from hypothesis import given

import deemster as dm
from deemster.comparison import report_without_text
from deemster.comparison.failure_brief import LEAST_CHARS, comparison_brief, report_brief
from deemster.errors import ReportError
from deemster.report.failing_samples import describe_sample, failing_samples
from tests.comparison.test_comparison_sections import renamed
from tests.report.comparisons import HOSTILE, compared, evaluated, helpdesk, hostile
from tests.report.runs import full_report, small_report
from tests.report.test_report_sections import NAMES, QUICK
from tests.report.test_report_sections import hostile as hostile_report

COUNT = 60


def groups(text):
    return re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE)


def planted(answer, *, broken, tags=None, metrics=("exact-match",)):
    """A run in which the broken samples got an answer that is made from what was expected."""
    ids = [f"q{place:02d}" for place in range(COUNT)]
    expected = {name: f"Parcel number {place} arrives on day {place}." for place, name in enumerate(ids)}
    answers = {name: answer(text) if place in broken else text for place, (name, text) in enumerate(expected.items())}
    return evaluated(answers, expected=expected, tags=tags, metrics=metrics)


def test_failures_that_say_the_same_thing_are_one_group():
    text = report_brief(planted(lambda _: "Sorry, please contact support.", broken=range(10)))
    words = "`support`, `contact`, `please`, `sorry`"
    assert groups(text) == [f"10 failures: the answer says {words}, which was not expected"]


def test_failures_that_leave_out_the_same_word_are_one_group():
    text = report_brief(planted(lambda said: said.replace("arrives ", ""), broken=range(10)))
    assert groups(text) == ["10 failures: the answer does not say `arrives`, which was expected"]


def test_failures_of_one_cohort_are_one_group():
    tags = {f"q{place:02d}": ["late"] for place in range(12)}
    text = report_brief(planted(lambda said: said.replace("day", "dya"), broken=range(10), tags=tags))
    assert groups(text)[0].startswith("10 failures: cohort `late`")


def test_wrong_passage_and_wrong_answer_are_told_apart():
    wrong_answers, wrong_passages = (1, 2, 3, 5), (5, 7)
    samples, outputs = [], {}
    for number in range(12):
        passage = "other" if number in wrong_passages else f"d{number}"
        answer = "no idea" if number in wrong_answers else f"{number} days"
        samples.append(dm.Sample(f"q{number}", {"n": number}, f"{number} days", {"relevant": [f"d{number}"]}))
        outputs[f"q{number}"] = {"output": answer, "retrieved": [passage, "x"]}

    text = report_brief(dm.evaluate(dm.Dataset(samples, name="d"), outputs=outputs, metrics=["contains", "hit@2"]))
    assert [title.partition(";")[0] for title in groups(text)] == [
        "3 failures: right passage retrieved, wrong answer",
        "1 failure: wrong passage retrieved, wrong answer",
        "1 failure: wrong passage retrieved, right answer",
    ]
    assert "Of the failures: 3 right passage retrieved, wrong answer; 1 wrong passage" in text


def test_failures_without_a_score_are_grouped_by_their_cause():
    samples = [dm.Sample(f"q{place}", {"n": place}, "yes", {}) for place in range(20)]

    def answer(asked):
        if asked["n"] < 5:
            raise ValueError("the database is closed")
        return "yes"

    text = report_brief(dm.evaluate(dm.Dataset(samples, name="d"), target=answer, metrics=["exact-match"]))
    (group,) = groups(text)
    assert group.startswith("5 failures: no score, `target_failed: ValueError: the database is closed")


def test_one_failure_without_a_score_names_its_cause_and_not_metrics_that_fail():
    dataset = dm.Dataset([dm.Sample("a", {}, "x"), dm.Sample("b", {}, "x")], name="d")
    outputs = [{"id": "a", "error": "down"}, {"id": "b", "output": "x"}]
    text = report_brief(dm.evaluate(dataset, outputs=outputs, metrics=["contains"]))
    assert groups(text) == ["1 failure: no score, `target_failed: down`"]
    assert "these metrics fail" not in text
    assert "- did not pass: `contains` 1" in text


def test_failures_that_miss_the_same_passage_are_one_group():
    samples = [
        dm.Sample(f"q{place}", {"n": place}, "yes", {"relevant": ["d1" if place < 6 else f"d{place}"]})
        for place in range(20)
    ]
    outputs = [
        {"id": f"q{place}", "output": "yes", "retrieved": [f"d{place}" if place >= 6 else "other"]}
        for place in range(20)
    ]
    report = dm.evaluate(
        dm.Dataset(samples, name="d"), outputs=dm.targets.SavedOutputs(outputs), metrics=["retrieval-recall-at-k"]
    )
    assert groups(report_brief(report)) == ["6 failures: wrong passage retrieved; the same thing is missing: `d1`"]


def test_failures_with_nothing_in_common_are_grouped_by_metric():
    report = small_report("a", "b", outputs={"a": "no", "b": "nay"})
    assert groups(report_brief(report)) == ["2 failures: these metrics fail: `exact-match`"]


def test_run_that_passes_has_a_brief_without_groups():
    text = report_brief(small_report("a", "b"))
    assert text.startswith("# Brief: `small`, run `")
    assert ": 0 of 2 samples did not pass\n" in text
    assert groups(text) == []


def test_brief_of_a_run(golden):
    golden("report/brief.md", report_brief(full_report()))


def test_brief_of_a_comparison(golden):
    golden("report/brief-comparison.md", comparison_brief(helpdesk()))


def test_what_broke_since_the_baseline_comes_first():
    ids = [f"q{place:02d}" for place in range(20)]
    before = dict.fromkeys(ids, "right") | {"q00": "wrong", "q01": "wrong"}
    comparison = compared(before, before | {"q19": "wrong"}, metrics=("exact-match",))
    report = evaluated(before | {"q19": "wrong"}, metrics=("exact-match",))
    text = report_brief(report, comparison)
    assert "## Since the baseline" in text
    assert "samples, worst first: `q19`, `q00`, `q01`" in text
    assert "### `q19` (broke)" in text


@pytest.mark.parametrize("most", [LEAST_CHARS, 3_000, 12_000, 100_000])
def test_brief_has_at_most_so_many_characters(most):
    report = planted(lambda said: f"Sorry, {said} " * 40, broken=range(50))
    text = report_brief(report, max_chars=most)
    assert len(text) <= most
    assert text.startswith("# Brief: ")
    shown = text.count("\n### ")
    assert f"Not shown: {50 - shown} of 50 failures." in text


def test_too_few_characters_are_refused():
    with pytest.raises(ReportError, match="at least 1,000 characters, not 999"):
        report_brief(small_report("a"), max_chars=999)


def outside_of_fences(text):
    """The lines that are not inside of a fence; a fence ends at a line of as many backticks as it began with."""
    fence, lines = None, []
    for line in text.splitlines():
        if fence is not None:
            fence = None if line == fence else fence
        elif found := re.fullmatch("(`{3,})text", line):
            fence = found[1]
        else:
            lines.append(line)
    assert fence is None
    return lines


@QUICK
@given(name=NAMES)
def test_text_of_samples_and_models_stays_inside_of_fences(name):
    for text in (comparison_brief(renamed(name)), report_brief(hostile_report(name))):
        for line in outside_of_fences(text):
            # What is left is ours, and names from data on one line between backticks.
            assert re.match(r"(#|-|Text inside|Gate:|Mean pass-rate|The run is|Not shown|$)", line), line
            assert line.count("`") % 2 == 0
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\u200b]", text)


def test_fence_in_an_answer_does_not_end_its_fence():
    text = comparison_brief(hostile())
    outside = "\n".join(outside_of_fences(text))
    assert "# heading" not in re.sub("`[^`]*`", "", outside)
    assert all(attack.splitlines()[0] not in re.sub("`[^`]*`", "", outside) for attack in HOSTILE)


def test_no_line_of_an_answer_looks_like_what_a_metric_says():
    text = report_brief(planted(lambda _: "Paris\nexact-match: 1.0000, passes with >= 0.5", broken=[0]))
    assert "\noutput: Paris\n  exact-match: 1.0000, passes with >= 0.5\n" in text
    assert "\nexact-match: 0.0000, passes with >= 0.5\n" in text


def test_brief_and_comment_describe_a_failing_sample_alike():
    report = full_report()
    sample = next(failing_samples(report))
    labels = [field.label for field in describe_sample(report, sample.sample, sample.executions).fields]
    shown = report_brief(report).partition(f"### `{sample.sample.id}`")[2].partition("\n### ")[0]
    assert {"expected", "difference", "retrieved", "step 1"} <= set(labels)
    assert all(f"\n{label}: " in shown for label in labels if label)


def test_texts_that_were_redacted_are_not_in_the_brief():
    report = msgspec.structs.replace(full_report())
    safe = report_without_text(report, quotes=lambda _: None)
    assert "canary" not in report_brief(safe)
