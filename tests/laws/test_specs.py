"""The spec of a metric that asks a model round-trips with any options."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deemster.judges import metric_catalog as catalog
from deemster.judges.geval_definition import FIELDS, TENTHS, load_preset, preset_names
from deemster.judges.judge_panel import COMBINATIONS

few = settings(max_examples=20, deadline=None)
# Quotes, brackets, commas, line ends, words that JSON knows, and letters of every kind.
texts = st.one_of(
    st.sampled_from(
        ["true", "null", "NaN", "a,b", "k=v", ")@3", '"', "\\", "{{nonce}}", "é\n", "-", "1", "judge:strict"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip),
)
roles = texts.map(str.strip)
shares = st.floats(0, 1)
general = {"name": texts, "threshold": shares}


RUBRICS = [
    {"criteria": [{"requirement": "It is right."}]},
    {"criteria": [{"name": "a,b", "requirement": 'It has "quotes".', "weight": -3}, {"requirement": "It ends.\n"}]},
]


def options(chosen, *, required=()):
    """Some of the options, each with one of its values."""
    optional = {name: values for name, values in chosen.items() if name not in required}
    return st.fixed_dictionaries({name: chosen[name] for name in required}, optional=optional)


@st.composite
def panels(draw, combinations=COMBINATIONS, *, fewest=1):
    told = draw(
        options(
            {
                "models": st.lists(roles, min_size=1, max_size=3, unique=True),
                "samples": st.integers(fewest, 5),
                "temperature": st.floats(0.01, 2),
                "combine": st.sampled_from(combinations),
                "max_tokens": st.integers(1, 9999),
                **general,
            }
        )
    )
    if fewest > 1:
        told.setdefault("samples", fewest)
    models = told.get("models", ["judge"])
    if told.get("combine") == "weighted":
        told["weights"] = dict(zip(models, draw(st.tuples(*[st.floats(0.5, 9) for _ in models])), strict=True))
    if draw(st.booleans()):
        told["quorum"] = draw(st.integers(1, len(models) * told.get("samples", 1)))
    return told


@st.composite
def rubrics(draw):
    edges = sorted(draw(st.sets(st.integers(0, 1000), min_size=3, max_size=5)))
    ranges = [[low, high - 1] for low, high in pairwise(edges)]
    return draw(st.permutations([{"range": ends, "outcome": draw(texts)} for ends in ranges]))


@st.composite
def qualities(draw, name=None):
    scoring = draw(st.sampled_from(["integer", "logprobs", "samples"]))
    allowed = {"integer": COMBINATIONS, "logprobs": COMBINATIONS[1:], "samples": ("mean", "weighted")}
    told = draw(panels(allowed[scoring], fewest=2 if scoring == "samples" else 1))
    told |= draw(
        options(
            {
                "fields": st.lists(st.sampled_from(FIELDS), min_size=1, unique=True),
                "rubric": rubrics(),
                "higher_is_better": st.booleans(),
                "strict": st.booleans(),
                "info": texts,
            }
        )
    )
    if scoring != "integer":
        told["scoring"] = scoring
    if name is not None:
        told["preset"] = name
    judged = draw(st.sampled_from(["criteria", "steps"] if name is None else ["criteria", "steps", "neither"]))
    if judged != "neither":
        told[judged] = draw(texts if judged == "criteria" else st.lists(texts, min_size=1, max_size=3))
    if draw(st.booleans()):
        told["few_shot"] = draw(st.lists(examples(told), max_size=2))
    return told


def examples(told):
    given_by = load_preset(told["preset"]) if "preset" in told else None
    fields = told.get("fields", ("input", "actual_output") if given_by is None else given_by.fields)
    bands = [band["range"] for band in told["rubric"]] if "rubric" in told else None
    if bands is None:
        bands = [band.range for band in (TENTHS if given_by is None else given_by.rubric)]
    scores = st.integers(min(low for low, _ in bands), max(high for _, high in bands))
    return st.fixed_dictionaries({"score": scores, "reason": texts, **dict.fromkeys(fields, texts)})


def places(*names):
    return st.permutations(names).map(lambda order: " ".join(f"Text: {{{{{name}}}}}" for name in order))


JUDGED = {
    "cosine-embedding": options({"mode": st.sampled_from(["clamp", "rescale"]), **general}),
    "bertscore-like": options(
        {
            "tokens": st.sampled_from(["unique", "all"]),
            "attribute": st.booleans(),
            "attribute_limit": st.integers(1, 99),
            "max_tokens": st.integers(1, 9999),
            **general,
        }
    ),
    "llm-as-judge": st.builds(
        lambda panel, own: panel | own,
        panels(),
        options({"logprobs": st.booleans(), "template": places("question", "expected_output", "actual_output")}),
    ),
    "refusal-quality": st.builds(
        lambda panel, own: panel | own, panels(), options({"template": places("expectation", "actual_output")})
    ),
    "pairwise": st.builds(
        lambda panel, own: panel | own,
        panels(),
        options(
            {
                "against": st.sampled_from(["auto", "expected", "baseline"]),
                "criteria": texts,
                "template": places("answer_a", "answer_b", "criteria"),
            }
        ),
    ),
    "claim-faithfulness": options(
        {
            "model": roles,
            "max_claims": st.integers(1, 1000),
            "without_claims": st.sampled_from(["unscored", "best"]),
            "max_tokens": st.integers(1, 9999),
            **general,
        }
    ),
    "rubric": options(
        {
            "rubric": st.sampled_from(RUBRICS),
            "judges": st.lists(st.sampled_from(["a", "b", "c:d"]), min_size=1, max_size=3, unique=True)
            | st.just([{"id": "x", "model": "a", "weight": 2.0}]),
            "calls": st.sampled_from(["per_criterion", "per_item"]),
            "aggregation": st.sampled_from(["majority", "any"]),
            "abstention": st.sampled_from(["skip", "zero", "partial", "fail"]),
            "partial_credit": st.floats(0, 1),
            "length_penalty": st.just({"free_budget": 10, "max_cap": 20}),
            "repeats": st.integers(1, 5),
            "seed": st.integers(0, 9),
            "system_prompt": st.just("Judge.") | st.just({"binary": "Judge."}),
            "max_tokens": st.integers(1, 9999),
            "probabilities": st.booleans(),
            **general,
        },
        required=("rubric",),
    ),
    "g-eval": qualities(),
    **{name: qualities(name) for name in preset_names()},
}


def made(alias, told):
    return catalog.resolve({alias: {key: value for key, value in told.items() if key != "preset"}})


@pytest.mark.parametrize("alias", JUDGED)
@few
@given(data=st.data())
def test_spec_of_model_metric_round_trips(alias, data):
    metric = made(alias, data.draw(JUDGED[alias]))
    again = catalog.parse_metric(str(metric))
    assert again == metric
    assert str(again) == str(metric)
    assert catalog.identity(again) == catalog.identity(metric)
    assert again.name == metric.name
    assert math.isfinite(again.threshold)


@pytest.mark.parametrize("alias", JUDGED)
@few
@given(data=st.data())
def test_different_option_gives_different_spec(alias, data):
    one, other = (data.draw(JUDGED[alias]) for _ in range(2))
    first, second = made(alias, one), made(alias, other)
    assume(first != second)
    assert str(first) != str(second)


def test_every_model_metric_is_covered():
    asking = {entry.name for entry in catalog.entries() if entry.family in ("semantic", "judge")}
    assert asking == set(JUDGED)
