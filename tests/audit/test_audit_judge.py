"""Judges with one planted bias each: every flag right, no other flag raised."""

from __future__ import annotations

import asyncio

import pytest

from bench import judge_biases
from deemster.audit.audit_judge import BiasSettings, audit_judge
from deemster.audit.judge_audit_report import judge_audit_sections
from deemster.audit.planted_outputs import expected_outputs
from deemster.datasets.planted_defects import reference_output
from deemster.engine.watchers import Watchers
from deemster.errors import ConfigurationError
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.judges.bias_probes import ORDER, PROBES
from deemster.models.model_client import ModelFailure
from tests.builders.biased_judges import BIASES, biased_judge


def test_every_probe_has_a_judge_with_that_bias():
    assert set(BIASES) == {*PROBES, ORDER}


def test_planted_bias_is_flagged_and_nothing_else():
    metrics = ["llm-as-judge", "pairwise", "rubric"]
    expected = {bias: {bias: metrics[1:] if bias == ORDER else metrics} for bias in BIASES}
    found = {
        bias: {probe: flagged for probe, flagged in probes.items() if flagged}
        for bias, probes in judge_biases.confusion_table().items()
    }
    assert found == {None: {}, **expected}


def test_bias_says_what_it_moves_in_the_pass_rate():
    found = judge_biases.audit("length", judge_biases.dataset(12)).metrics["llm-as-judge"]["length"]
    # The judge gives wrong answers 0.2 and adds 0.4: all pass with padding, none without. Right ones pass anyway.
    assert (found.wrong_move.value, found.right_move.value) == (1.0, 0.0)
    assert (found.to_pass, found.to_fail, found.pairs) == (12, 0, 24)
    assert found.flips.value == 0.5
    assert found.right_move.low < 0 < found.right_move.high


def test_same_seed_gives_the_same_audit_and_another_seed_another_one():
    samples = judge_biases.dataset(12)

    def audit(seed):
        right = {sample.input["question"]: sample.expected_output for sample in samples}
        outputs = expected_outputs(samples)
        texts = {name: output.text for name, output in outputs.items()}
        models = {"judge": biased_judge(None, right)}
        job = resolve_arguments(samples, outputs=texts, metrics=["llm-as-judge"], models=models)
        settings = BiasSettings(seed=seed, max_samples=6)
        return asyncio.run(audit_judge(job, "judge", outputs, source="", settings=settings, watchers=Watchers(print)))

    assert audit(1) == audit(1) != audit(2)


def test_pairs_without_a_score_are_counted_and_left_out():
    samples = judge_biases.dataset(4)
    outputs = {sample.id: reference_output(sample) for sample in samples}
    healthy = biased_judge(None, {sample.input["question"]: sample.expected_output for sample in samples})
    answer = healthy._answers
    healthy._answers = lambda ask: (
        ModelFailure("refused", "no") if "professors" in ask.messages[-1].content else answer(ask)
    )
    texts = {name: output.text for name, output in outputs.items()}
    job = resolve_arguments(samples, outputs=texts, metrics=["llm-as-judge"], models={"judge": healthy})
    settings = BiasSettings(probes=("authority", "length"))
    found = asyncio.run(audit_judge(job, "judge", outputs, source="", settings=settings, watchers=Watchers(print)))
    probes = found.metrics["llm-as-judge"]
    assert (probes["authority"].pairs, probes["authority"].unscored, probes["authority"].p_value) == (0, 8, None)
    assert (probes["length"].pairs, probes["length"].unscored) == (8, 0)


def test_role_that_no_metric_asks_is_an_error_that_names_the_roles():
    samples = judge_biases.dataset(2)
    outputs = expected_outputs(samples)
    texts = {name: output.text for name, output in outputs.items()}
    models = {"judge": biased_judge(None, {})}
    job = resolve_arguments(samples, outputs=texts, metrics=["llm-as-judge"], models=models)
    with pytest.raises(ConfigurationError, match=r"asks the role `jugde`\. They ask `judge`"):
        asyncio.run(audit_judge(job, "jugde", outputs, source="", watchers=Watchers(print)))


def test_probe_that_a_judge_must_notice_has_no_p_of_the_opposite_test_beside_its_flips():
    """A judge that notices every changed number flips every verdict; p 1.0000 beside that would say the contrary."""
    _, table = judge_audit_sections(judge_biases.audit(None, judge_biases.dataset(12)))[:2]
    column = table.table.head.index("p")
    rows = {row[0]: row for row in table.table.rows}
    assert rows["numbers-changed"][2].startswith("100.0 %")
    assert rows["numbers-changed"][column] == ""
    assert 0 < float(rows["length"][column]) <= 1
    (noticed,) = ("".join(line) for line in table.after if line[0].startswith("numbers-changed"))
    assert noticed.endswith("that it misses more than it may: p 1.0000.")
