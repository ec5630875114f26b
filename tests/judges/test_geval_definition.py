"""The ready-made qualities, and the groups made of them."""

import pytest

from deemster.errors import ConfigurationError
from deemster.judges._metric_table import PRESETS
from deemster.judges.geval import GEval
from deemster.judges.geval_definition import load_preset, preset_names
from deemster.judges.metric_catalog import parse_metric, resolve_all
from deemster.judges.metric_groups import GROUPS, metric_group
from deemster.metrics.metric_spec import parse_spec
from deemster.records import Output, Sample
from deemster.results.aggregator_section import build_aggregator
from deemster.results.metric_aggregators import MetricResult
from tests.judges.play import play, scored

SAMPLE = Sample("s", {"question": "the question", "context": ["one passage", "another passage"]}, "the reference")
OUTPUT = Output("the answer")
SHOWN = {
    "input": ["the question"],
    "context": ["one passage", "another passage"],
    "expected_output": ["the reference"],
    "actual_output": ["the answer"],
}
LOWER = {"redundancy", "query-redundancy"}
OF_THE_SPEC = {
    *("completeness", "groundedness", "redundancy", "language-consistency", "refusal-alignment", "context-sufficiency"),
    *("faithfulness", "answer-relevancy", "context-precision", "context-recall"),
    *("coherence", "consistency", "fluency", "relevance"),
}


def test_presets_match_specification():
    assert set(PRESETS) == set(preset_names())
    assert set(preset_names()) >= OF_THE_SPEC


@pytest.mark.parametrize("name", preset_names())
def test_preset_has_its_name_and_spec(name):
    metric = parse_metric(name)
    assert isinstance(metric, GEval)
    assert metric.name == name
    assert str(metric) == f"g-eval(preset={name})"
    assert GEval(**parse_spec(str(metric)).options) == metric
    assert parse_metric(str(metric)) == metric


@pytest.mark.parametrize("name", preset_names())
def test_preset_has_steps_a_rubric_a_pass_mark_and_a_polarity(name):
    found = load_preset(name)
    assert 3 <= len(found.steps) <= 6
    assert 0 < found.threshold <= 1
    assert found.higher_is_better is (name not in LOWER)
    assert found.about.endswith(".")


@pytest.mark.parametrize("name", preset_names())
def test_prompt_of_a_preset_holds_its_steps_its_bands_and_a_block_for_each_text(name):
    (ask,) = next(parse_metric(name).script(SAMPLE, OUTPUT))
    system, user = (message.content for message in ask.messages)
    found = load_preset(name)
    for place, step in enumerate(found.steps, start=1):
        assert f"\n{place}. {step}\n" in system
    for band in found.rubric:
        assert f": {band.outcome}\n" in system
    assert "{{" not in system + user
    for field, texts in SHOWN.items():
        for text in texts:
            assert (f"\n{text}\n>>> " in user) is (field in found.fields)


@pytest.mark.parametrize("name", preset_names())
def test_ends_of_a_presets_rubric_are_the_ends_of_its_score(name):
    metric = parse_metric(name)
    low, high = metric.quality.low, metric.quality.high
    least, _ = play(metric.script(SAMPLE, OUTPUT), [scored(low)])
    most, _ = play(metric.script(SAMPLE, OUTPUT), [scored(high)])
    assert (least.score, most.score) == (0.0, 1.0)
    assert (least.success, most.success) == ((False, True) if name not in LOWER else (True, False))


def test_no_two_presets_have_the_same_identity():
    assert len({parse_metric(name).version for name in preset_names()}) == len(preset_names())


def test_preset_takes_no_other_preset():
    assert parse_metric("completeness(preset=completeness)") == parse_metric("completeness")
    with pytest.raises(ConfigurationError, match="`completeness` is a preset itself and takes no other"):
        parse_metric("completeness(preset=redundancy)")


def test_unknown_preset_names_the_nearest():
    with pytest.raises(ConfigurationError, match="Did you mean `faithfulness`"):
        load_preset("faithfullness")


@pytest.mark.parametrize("name", GROUPS)
def test_group_is_metrics_and_an_aggregator_that_fits_them(name):
    found = metric_group(name)
    metrics = resolve_all(found.metrics)
    names = {metric.name: metric.name for metric in metrics}
    best = {
        metric.name: MetricResult(
            1.0 if metric.higher_is_better else 0.0,
            rubric_score=float(metric.quality.high if metric.higher_is_better else metric.quality.low),
            success=True,
            higher_is_better=metric.higher_is_better,
        )
        for metric in metrics
    }
    result = build_aggregator(found.aggregator, metrics=names).aggregate(best)
    assert (result.aggregate_success, result.aggregate_score) == (True, 1.0)


@pytest.mark.parametrize(("values", "score"), [((3, 3, 1), 1.0), ((2, 3, 1), 0.8), ((3, 3, 2), 0.85), ((1, 1, 3), 0.0)])
def test_query_transformation_gives_the_numbers_of_the_spec(values, score):
    found = metric_group("query-transformation")
    metrics = resolve_all(found.metrics)
    names = ("completeness", "groundedness", "redundancy")
    assert tuple(metric.name for metric in metrics) == names
    results = {}
    for metric, value in zip(metrics, values, strict=True):
        mark, _ = play(metric.script(SAMPLE, OUTPUT), [scored(value)])
        results[metric.name] = MetricResult(
            mark.score, mark.rubric_score, success=mark.success, higher_is_better=mark.higher_is_better
        )
    aggregator = build_aggregator(found.aggregator, metrics={name: name for name in names})
    result = aggregator.aggregate(results)
    assert result.aggregate_score == pytest.approx(score)
    assert result.aggregate_success is (score > 0)


def test_in_generation_only_groundedness_depends_on_declined_reference():
    metrics = resolve_all(metric_group("generation").metrics)
    assert [(metric.name, metric.refusal_check) for metric in metrics] == [
        ("completeness", False),
        ("redundancy", False),
        ("groundedness", True),
    ]


def test_unknown_group_names_the_nearest():
    with pytest.raises(ConfigurationError, match="Did you mean `summarisation`"):
        metric_group("summarization")
