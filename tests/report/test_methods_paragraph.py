"""The methods paragraph of a paper: every sentence is of what the report used, and every reference is named."""

from __future__ import annotations

import re
import warnings

import msgspec
import pytest

import deemster as dm
from deemster.datasets import SelectedPart
from deemster.models import FakeChat
from deemster.report.methods_paragraph import _REFERENCES, methods_paragraph
from deemster.results.metric_summary import CorrectedMean, CorrectedPassRate, CriterionSummary
from tests.report.runs import full_report

SAMPLES = [
    {"id": f"s{at}", "input": {"q": str(at)}, "expected_output": "yes", "metadata": {"doc": f"d{at // 2}"}}
    for at in range(8)
]


def written(samples=SAMPLES, metrics=("exact-match",), **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = more.pop("outputs", {sample["id"]: "yes" for sample in SAMPLES})
        target = {} if "target" in more else {"outputs": outputs}
        return methods_paragraph(dm.evaluate(samples, metrics=list(metrics), **target, **more))


def changed(**figures):
    """A report of one metric, with other figures."""
    report = dm.evaluate(SAMPLES, outputs={sample["id"]: "yes" for sample in SAMPLES}, metrics=["exact-match"])
    metrics = {name: msgspec.structs.replace(metric, **figures) for name, metric in report.metrics.items()}
    return msgspec.structs.replace(report, metrics=metrics)


def cited(text):
    """The references in brackets, and those in the list."""
    paragraph, listed = text.split("## References")
    return {key for key in _REFERENCES if key in paragraph}, {key for key in _REFERENCES if _REFERENCES[key] in listed}


@pytest.mark.parametrize("metrics", [("exact-match",), ("exact-match", "rouge-l", "token-f1")])
def test_references_are_those_that_the_paragraph_names(metrics):
    named, listed = cited(written(metrics=metrics))
    assert named == listed
    assert "Wilson 1927" in named
    assert ("Lin 2004" in named) == ("rouge-l" in metrics)


def test_plain_run_says_nothing_of_what_it_did_not_use():
    text = written()
    assert "8 samples" in text
    assert f"deemster {dm.__version__}" in text
    absent = ("times each", "cluster", "repetitions", "gate", "rule", "judgement", "corrected", "mean of the metrics",
              "aggregator", "could not be had", "part of", "attack", "Holm", "rubric", "Kish")  # fmt: skip
    for word in absent:
        assert word not in text.split("## References")[0], word


def test_repetitions_and_clusters_are_units():
    answers = iter(range(1000))
    text = written(target=lambda _: "yes" if next(answers) % 3 else "no", repetitions=3)
    assert "3 times each" in text
    assert "repetitions of a sample are one" in text
    assert "Kish 1965" not in text
    clustered = written(dm.Dataset(SAMPLES, name="numbers", cluster="doc"))
    assert re.search(r"clusters of samples with the same .*doc", clustered)
    assert "Kish 1965" in cited(clustered)[1]


def test_scores_that_are_missing_are_counted():
    answers = iter([*["yes"] * 6, None, None])
    text = written(target=lambda _: next(answers), concurrency=1)
    assert "2 of 8 scores could not be had; they count as not passed, and are in no mean score." in text


def test_judge_is_named_with_its_model():
    judge = FakeChat('{"score": 5, "reason": "Right."}', model="m-7")
    text = written(metrics=("llm-as-judge",), models={"judge": judge})
    assert "The scores of llm-as-judge are judgements of <code>m-7</code>." in text
    assert "Zheng 2023" in cited(text)[1]


def test_rules_of_a_gate_are_listed_with_their_bounds():
    text = written(gate={"min_macro_f1": 0.5, "max_unscored": 0})
    assert "The run was held to 2 rules" in text
    assert "0.5</code>" in text
    assert "Against the baseline" not in text


def test_margin_of_a_baseline_is_described_once_it_is_checked(tmp_path):
    storage = dm.Storage(str(tmp_path / "runs.db"))
    outputs = {sample["id"]: "yes" for sample in SAMPLES}
    gate = {"baseline": {"compare": "previous", "margin": 0.5}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reports = [
            dm.evaluate(SAMPLES, outputs=outputs, metrics=["exact-match", "contains"], gate=gate, storage=storage)
            for _ in range(2)
        ]
    text = [methods_paragraph(report) for report in reports]
    assert "Against the baseline" not in text[0]
    assert "a margin holds where the one-sided lower bound of the difference lies above it" in text[1]
    assert "Holm 1979" in cited(text[1])[1]


def test_correction_by_labels_is_described_where_it_gave_a_number():
    found = CorrectedPassRate(value=0.8, low=0.7, high=0.9, labels=40, mean=CorrectedMean(value=0.8, low=0.7, high=0.9))
    text = methods_paragraph(changed(pass_rate_corrected=found))
    assert "was also corrected for the judge's errors on 40 labels of people" in text
    assert {"Rogan 1978", "Lang 2014", "Angelopoulos 2023"} <= cited(text)[1]
    assert "corrected" not in methods_paragraph(changed(pass_rate_corrected=CorrectedPassRate(labels=40, note="No.")))


def test_criteria_of_a_rubric_are_named():
    figures = CriterionSummary(
        n=8, n_judged=8, n_abstained=0, n_failed=0, mean=1.0, mean_interval=None, mean_agreement=None
    )
    text = methods_paragraph(changed(criteria={"facts": figures, "tone": figures}))
    assert "The rubric of exact-match has the criteria <code>facts</code> and <code>tone</code>." in text


def test_part_and_unfinished_run_say_so():
    report = changed()
    part = SelectedPart(samples=8, of=80, selection="--sample 8")
    run = msgspec.structs.replace(report.run, part=part, status="incomplete", reason="the budget")
    text = methods_paragraph(msgspec.structs.replace(report, run=run))
    assert "They are a part of 80 samples, selected by <code>--sample 8</code>." in text
    assert "The run is incomplete: <code>the budget</code>." in text


def test_text_of_a_user_is_escaped():
    samples = [{**SAMPLES[0], "id": "s0"}]
    text = written(dm.Dataset(samples, name="<b>x</b>"), outputs={"s0": "yes"})
    assert "<b>" not in text


def test_report_without_texts_has_a_methods_paragraph(tmp_path):
    report = full_report()
    report.save(tmp_path / "methods.md")
    assert (tmp_path / "methods.md").read_text(encoding="utf-8") == methods_paragraph(report)
