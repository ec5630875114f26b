"""Every kind of HTML page, with one text in every place that holds text from data."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta

import msgspec

from deemster.agreement import JudgePair, MetricsResult
from deemster.agreement.agreement_page import agreement_page
from deemster.datasets import RubricDataset
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.judges.vote import Vote
from deemster.monitoring.pass_rate_over_time import MonitoredRecord, track_pass_rate
from deemster.report.grading_result import Grading, JudgeGrading
from deemster.report.report_entries import ScoreEntry
from deemster.stats.confidence_interval import ConfidenceInterval
from tests.agreement import make_results
from tests.comparison.test_comparison_sections import renamed
from tests.report.test_report_sections import hostile

# Fields of a result of agreement that hold names; `labels` holds the names of classes.
_NAMES = frozenset({"name", "judge_id", "id", "item", "criterion", "tag", "label"})
_NAMED_MAPS = frozenset({"per_judge", "annotator_tests"})


def report_page(text):
    """A report: ids, tags, names of suite, dataset, metrics and models, texts, messages, reasons of judges."""
    report, replace = hostile(text), msgspec.structs.replace
    details = {"judge_reason": text, "votes": [{"judge": text, "reason": text}], "missing": [text], text: text}

    def execution(entry):
        marks = {
            name: replace(mark, details=details, success=False) if isinstance(mark, ScoreEntry) else mark
            for name, mark in entry.marks.items()
        }
        return replace(entry, output=f"a {text} b", retrieved=[{"id": text}, text], marks=marks)

    return replace(
        report,
        samples=[replace(entry, input={"question": text}, expected_output=f"a {text}") for entry in report.samples],
        executions=[execution(entry) for entry in report.executions],
    ).to_html()


def comparison_page(text):
    """A comparison of two runs."""
    return renamed(text).to_html()


@functools.cache
def _alignment():
    return msgspec.json.decode(make_results.full_result().to_json())


def _rename(value, text, key=""):
    if isinstance(value, dict):
        named = key in _NAMED_MAPS or (key == "labels" and all(isinstance(each, str) for each in value.values()))
        return {text if named else name: _rename(each, text, name) for name, each in value.items()}
    if isinstance(value, list):
        # The classes of a confusion matrix are told apart by their places.
        return [_rename(each, text, "name" if key in ("labels", "warnings") else key) for each in value]
    return text if isinstance(value, str) and key in _NAMES else value


def alignment_result(text):
    """A result of agreement with one text as the name of every judge, person, criterion, class, item and tag."""
    return msgspec.convert(_rename(_alignment(), text), MetricsResult)


def judges_page(text):
    """The alignment of judges with people."""
    ci = ConfidenceInterval(0.6, 0.9, 0.95, "wilson")
    pair = JudgePair(judge_a=text, judge_b=text, n_samples=40, agreement=0.8, ci=ci)
    return agreement_page(alignment_result(text), [pair])


def grading(text):
    """A grading with one text as every id, name, verdict and reason."""
    votes = (Vote(judge=text, verdict="MET", value=1.0, reason=f"It is {text}"),)
    items = tuple(
        ItemGrading(
            id=text,
            score=score,
            criteria=(CriterionGrading(criterion="facts", verdict="MET", value=1.0, agreement=1.0, votes=votes),),
            judge_scores={text: score},
        )
        for score in (1.0, 0.25, 0.25)
    )
    rows = [{"id": f"i{place}", "submission": "x"} for place in range(3)]
    dataset = RubricDataset(rows, rubric=[{"name": "facts", "requirement": "It is right."}], name=text)
    judge = JudgeGrading(id=text, model=text, votes=3)
    return Grading(items=items, judges=(judge,), settings={"normalize": True}, dataset=dataset, mixed=(text,), run=text)


def graded_page(text, *, reasons=True):
    """A grading, with its alignment."""
    found = grading(text)
    vars(found)["agreement"] = alignment_result(text)
    return found.to_html(reasons=reasons)


def history(name):
    """A pass rate that falls on the last two of six days."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    records = [
        MonitoredRecord(start + timedelta(hours=place), passed=place % 8 != 0 if place < 96 else place % 3 == 0)
        for place in range(144)
    ]
    return track_pass_rate(records, baseline=48, dataset=name)


def monitored_page(text):
    """A pass rate over time."""
    return history(text).to_html()


PAGES = {
    "report": report_page,
    "comparison": comparison_page,
    "alignment": judges_page,
    "grading": graded_page,
    "monitoring": monitored_page,
}
