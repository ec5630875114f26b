"""The mutation score: on the examples, byte for byte; and what a gate lets through against planned power."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from scipy.stats import binom

from deemster.audit.audit_metrics import DefectSettings, audit_metrics
from deemster.audit.metric_audit_report import metric_audit_sections
from deemster.audit.mutation_score import EXPECTED
from deemster.audit.planted_outputs import audit_job, expected_outputs, saved_outputs
from deemster.datasets import Dataset
from deemster.engine.stop_request import Stop
from deemster.engine.watchers import Watchers
from deemster.errors import ConfigurationError
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.suite import load_suite
from deemster.models.fake_models import FakeChat
from deemster.models.model_client import ModelFailure
from deemster.stats.power_analysis import PairedNoise, gate_power
from deemster.text.markdown_layout import render_markdown
from tests.builders.arguments import arguments
from tests.runs import word_overlap_judge

EXAMPLES = Path(__file__).parents[2] / "examples"


def audit(job, outputs, *, source=EXPECTED, **settings):
    work = audit_metrics(job, outputs, source=source, settings=DefectSettings(**settings), watchers=Watchers(print))
    return asyncio.run(work)


def example(name, *, judge=None, file=None, **settings):
    job = audit_job(load_suite(EXAMPLES / name / "suite.yml"))
    if judge is not None:
        # Recorded replies are about the outputs of the example, not about planted ones.
        role = msgspec.structs.replace(job.access.roles["judge"], client=judge, model=None, recording=None)
        job = job._replace(access=job.access._replace(roles={**job.access.roles, "judge": role}))
    dataset = job.plan.dataset
    outputs = expected_outputs(dataset) if file is None else saved_outputs(str(EXAMPLES / name / file), dataset)
    return audit(job, outputs, source=EXPECTED if file is None else file, **settings)


@pytest.mark.parametrize(
    "name", ["quickstart", "citations", "agent", "retrieval", "triage", "custom_metric", "targets"]
)
def test_matrix_of_an_example_matches_its_golden_file(name, golden):
    found = example(name, draws=4)
    golden(f"audit/{name}.md", render_markdown(metric_audit_sections(found)))


def test_matrix_of_the_rag_example_has_its_judged_metrics(golden):
    found = example("rag", judge=word_overlap_judge.judge, file="answers.jsonl", draws=4)
    assert {"claim-faithfulness", "answer-relevancy", "redundancy"} <= set(found.metrics)
    golden("audit/rag.md", render_markdown(metric_audit_sections(found)))


def rooms(count, *, gate=None, metrics=("exact-match",), **settings):
    rows = [
        {
            "id": f"r{n}",
            "input": {"question": f"Where is room {n}?"},
            "expected_output": f"Room {n} is on floor {n + 3}.",
        }
        for n in range(count)
    ]
    dataset = Dataset(rows, name="rooms")
    outputs = expected_outputs(dataset)
    job = resolve_arguments(
        dataset,
        outputs={name: output.text for name, output in outputs.items()},
        metrics=list(metrics),
        gate=gate,
        **arguments(**settings),
    )
    return job, outputs


def assert_is_chance(passed, draws, chance):
    """Whether a count is within what 999 of 1,000 simulations give."""
    low, high = binom.interval(0.999, draws, chance)
    assert low <= passed <= high, (passed, draws, chance)


def test_gate_on_the_pass_rate_detects_a_defect_as_often_as_planned():
    job, outputs = rooms(30, gate={"metrics": {"exact-match": {"min_pass_rate": 0.8}}})
    found = audit(job, outputs, defects=("refusal",), draws=150).defects["refusal"]
    assert found.suite.rate == 1.0
    for trial in found.gate:
        # Six of thirty may fail; each output has the defect with the chance of the share, and fails then.
        assert_is_chance(trial.passed, trial.draws, binom.cdf(6, 30, trial.share))
        assert trial.low <= trial.rate <= trial.high
        assert trial.low < trial.high


def test_gate_with_a_margin_detects_a_defect_as_often_as_planned():
    job, outputs = rooms(30, gate={"baseline": {"margin": 0.2}})
    found = audit(job, outputs, defects=("refusal",), draws=40).defects["refusal"]
    for trial in found.gate[:-1]:
        power = gate_power(30, PairedNoise(flip_rate=0.0), outcome="fail", drop=trial.share, margin=0.2)
        assert_is_chance(trial.draws - trial.passed, trial.draws, power)
    assert (found.gate[-1].draws, found.gate[-1].passed) == (1, 0)


def test_checks_that_good_outputs_miss_are_left_out_and_named():
    job, outputs = rooms(4, gate={"metrics": {"exact-match": {"min_pass_rate": 1}}, "budget": {"max_cost_usd": 1}})
    found = audit(job, outputs, defects=("refusal",), draws=3)
    assert found.gate_checks == ("metrics.exact-match.min_pass_rate",)
    assert found.gate_unmet == ("budget.max_cost_usd",)


def test_output_that_a_metric_cannot_read_any_more_is_killed():
    dataset = Dataset([{"id": "a", "input": {}, "expected_output": {"n": 1}}], name="json")
    outputs = expected_outputs(dataset)
    job = resolve_arguments(dataset, outputs={"a": outputs["a"].text}, metrics=["json-match"])
    found = audit(job, outputs).defects["broken-json"]
    assert (found.metrics["json-match"].killed, found.metrics["json-match"].n) == (1, 1)


def test_samples_without_an_output_are_left_out_and_counted():
    job, outputs = rooms(4)
    del outputs["r1"]
    found = audit(job, outputs, defects=("truncation",))
    assert (found.samples, found.left_out, found.defects["truncation"].planted) == (3, 1, 3)
    with pytest.raises(ConfigurationError, match="No sample has an output"):
        audit(job, {})


def test_samples_are_drawn_where_there_are_more_than_asked_for():
    job, outputs = rooms(9)
    found = audit(job, outputs, defects=("truncation",), max_samples=4)
    assert (found.samples, found.left_out, found.defects["truncation"].planted) == (4, 5, 4)


def test_same_seed_gives_the_same_bytes():
    job, outputs = rooms(6, gate={"metrics": {"exact-match": {"min_pass_rate": 0.5}}})
    first, same, other = (audit(job, outputs, draws=5, seed=seed).to_json() for seed in (1, 1, 2))
    assert first == same != other


def test_audit_that_is_stopped_says_why():
    job, outputs = rooms(4)
    stop = Stop()
    stop.request("interrupted")
    found = asyncio.run(audit_metrics(job, outputs, source=EXPECTED, watchers=Watchers(print, stop=stop)))
    assert found.stopped == "interrupted"
    assert found.score.rate is None


def test_judge_that_never_answers_leaves_everything_unknown():
    samples = Dataset(
        [{"id": "a", "input": {"question": "How long?"}, "expected_output": "It takes 3 days."}], name="one"
    )
    outputs = expected_outputs(samples)
    silent = FakeChat(lambda _: ModelFailure("refused", "no such model"), model="silent")
    job = resolve_arguments(
        samples,
        outputs={name: output.text for name, output in outputs.items()},
        metrics=["llm-as-judge"],
        gate={"min_pass_rate": 0.5, "baseline": {"margin": 0.1}},
        models={"judge": silent},
    )
    found = audit(job, outputs, draws=3)
    assert (found.score.rate, found.score.low, found.score.n) == (None, None, 0)
    assert not any(defect.gate for defect in found.defects.values())
    assert "Nothing is known" in render_markdown(metric_audit_sections(found))


def test_mutation_score_has_an_interval_over_samples():
    job, outputs = rooms(30, metrics=("exact-match", "contains"))
    score = audit(job, outputs, draws=0).score
    assert score.low < score.rate <= score.high
    # Thirty samples are thirty units, however many defects each of them got.
    assert score.n > 90
    assert score.high - score.low > 0.05
