import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.report.failing_samples import (
    count_failing,
    describe_sample,
    detail_notes,
    failing_section,
    word_difference,
)
from deemster.text.text_sections import AddedText, RemovedText


def evaluated(expected, output, *, metrics=("exact-match",), **more):
    dataset = dm.Dataset([dm.Sample("a", {"question": "Why?"}, expected)], name="d")
    return dm.evaluate(dataset, outputs=[{"id": "a", "output": output, **more}], metrics=list(metrics))


def fields(report):
    found = report.failures()[0]
    return {
        field.label: "".join(field.line)
        for field in describe_sample(report, found.sample, found.executions).fields
        if field.label
    }


def test_only_samples_that_did_not_pass_are_failures():
    dataset = dm.Dataset([dm.Sample("a", {}, "x"), dm.Sample("b", {}, "x")], name="d")
    report = dm.evaluate(dataset, outputs={"a": ["x", "x"], "b": ["x", "y"]}, metrics=["exact-match"], repetitions=2)
    (failing,) = report.failures()
    assert failing.sample.id == "b"
    assert [execution.output for execution in failing.executions] == ["y"]
    section = failing_section(report)
    assert section.details[0].title == ("b", ", 1 of 2 repetitions passed")


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@given(
    st.lists(st.tuples(st.sampled_from(["x", "y", None]), st.sampled_from(["x", "y", None]), st.booleans()), min_size=1)
)
def test_count_is_that_of_the_failing_samples_whatever_fails_or_does_not_apply(answers):
    samples = [
        dm.Sample(f"s{place}", {}, "x", metadata={"tags": ["asked"] if is_asked else []})
        for place, (_, _, is_asked) in enumerate(answers)
    ]
    outputs = [
        {"id": f"s{place}", "repetition": number, **({"error": "down"} if said is None else {"output": said})}
        for place, (*both, _) in enumerate(answers)
        for number, said in enumerate(both)
    ]
    where = {"tags": "asked"} if any(is_asked for *_, is_asked in answers) else None
    metrics = [dm.metrics.ExactMatch(where=where)]
    report = dm.evaluate(dm.Dataset(samples, name="d"), outputs=outputs, metrics=metrics, repetitions=2)
    assert count_failing(report) == len(report.failures())


def test_run_without_failure_says_so():
    assert failing_section(evaluated("x", "x")).lines == [("None: every metric passed everywhere.",)]


def test_difference_marks_what_is_missing_and_what_was_added():
    report = evaluated("free above 50 euros", "free above 40 euros today")
    line = next(field.line for field in failing_section(report).details[0].fields if field.label == "difference")
    assert [part for part in line if isinstance(part, RemovedText)] == ["50 "]
    assert [part for part in line if isinstance(part, AddedText)] == ["40 ", "today"]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [("Yes, cash", "Yes, cash only here.", "Yes, cash only here."), ("Free today only", "Free", "Free today only")],
)
def test_space_between_what_is_common_and_what_differs_is_kept_at_the_end_of_a_text(before, after, shown):
    assert "".join(word_difference(before, after)) == shown


def test_difference_of_texts_with_little_in_common_is_left_out():
    assert "difference" not in fields(evaluated("free above 50 euros", "I do not know."))


def test_retrieved_ids_and_steps_are_shown():
    trajectory = {"tool_calls": [{"name": "search", "arguments": {"q": "x"}, "result": "two hits"}]}
    shown = fields(evaluated("x", "y", retrieved=[{"id": "d1", "text": "..."}, "d2"], trajectory=trajectory))
    assert shown["retrieved"] == "d1, d2"
    assert shown["step 1"] == "search(q=x) gave two hits"


def test_failed_target_is_one_line_and_not_one_for_each_metric():
    dataset = dm.Dataset([dm.Sample("a", {}, "x")], name="d")
    outputs = [{"id": "a", "error": "connection refused"}]
    report = dm.evaluate(dataset, outputs=outputs, metrics=["exact-match", "contains"])
    assert fields(report) == {"expected": "x", "target": "target_failed: connection refused"}


@pytest.mark.parametrize(
    ("details", "notes"),
    [
        ({"judge_reason": "It is rude."}, [("reason", "It is rude.")]),
        ({"votes": [{"role": "gpt", "reason": "No source."}, {"role": "b"}]}, [("gpt says", "No source.")]),
        (
            {
                "findings": [
                    {"claim": "Free.", "verdict": "supported", "reason": "yes"},
                    {"claim": "Fast.", "verdict": "unsupported", "reason": "not said"},
                ]
            },
            [("claim unsupported", "Fast.: not said")],
        ),
        ({"missing": ["d3", "d4"], "required": 4}, [("missing", "d3, d4")]),
        ({"missing_citations": 2, "matched": 1}, [("missing_citations", "2")]),
        ({"heard": "a custom word", "score": 0.25}, [("heard", "a custom word")]),
    ],
)
def test_details_tell_reasons_claims_and_what_is_missing(details, notes):
    assert list(detail_notes(details)) == notes


def test_without_text_removes_what_a_sample_says():
    from deemster.comparison import report_without_text

    report = evaluated("secret answer", "secret output", retrieved=["secret"])
    shown = report_without_text(report, quotes=lambda _: frozenset())
    assert "secret" not in str(failing_section(shown))


def test_notebook_shows_the_numbers_and_the_failing_samples():
    page = evaluated("x", "<b>y</b>")._repr_html_()
    assert "<table>" in page
    assert "exact-match" in page
    assert "&lt;b&gt;y&lt;/b&gt;" in page
    assert "<html" not in page
