"""Laws that hold for every quality on a rubric and every reply."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.judges.claim_faithfulness import ClaimFaithfulness
from deemster.judges.geval import GEval
from deemster.judges.geval_definition import parse_bands, preset_names
from deemster.records import CAUSES, Answer, MetricScore, NoAnswer, Output, Sample, Token, Unscored
from tests.judges.play import answered

SAMPLE = Sample("s", {"question": "q", "context": "c"}, "yes")
OUTPUT = Output("maybe")
shares = st.floats(1e-6, 1)
replies = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.fixed_dictionaries({"reason": st.just("r"), "score": st.integers(-2, 12) | st.floats(0, 10)}).map(json.dumps),
    st.fixed_dictionaries({"reason": st.just("r"), "verdict": st.sampled_from(["supported", "open"])}).map(json.dumps),
    st.fixed_dictionaries({"claims": st.lists(st.text(st.characters(exclude_categories=["Cs"])))}).map(json.dumps),
    st.fixed_dictionaries({"steps": st.lists(st.text(st.characters(exclude_categories=["Cs"])))}).map(json.dumps),
)
no_answers = st.builds(
    NoAnswer, cause=st.sampled_from(["model_failed", "rate_limited", "not_run"]), message=st.just("m")
)
METRICS = {
    **{name: GEval(preset=name) for name in preset_names()},
    "criteria": GEval(criteria="c"),
    "panel": GEval(steps=["s"], models=["a", "b", "c"]),
    "samples": GEval(steps=["s"], scoring="samples", samples=3),
    "logprobs": GEval(steps=["s"], scoring="logprobs"),
    "strict": GEval(steps=["s"], strict=True, higher_is_better=False),
    "checked": GEval(preset="groundedness", refusal_check=True),
    "claims": ClaimFaithfulness(),
}


def played(metric, choose):
    return answered(metric.script(SAMPLE, OUTPUT), choose)[0]


def scored(value, *, tokens=None):
    return Answer(text=f'{{"reason": "r", "score": {value}}}', tokens=tokens)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@given(data=st.data())
def test_any_reply_gives_mark_in_bounds_or_known_cause(metric, data):
    answers = st.builds(Answer, text=replies) | no_answers
    mark = played(metric, lambda _: data.draw(answers))
    if isinstance(mark, Unscored):
        assert mark.cause in CAUSES
    else:
        assert 0.0 <= mark.score <= 1.0
        json.dumps(json.loads(json.dumps(dict(mark.details), default=list)))


@given(low=st.integers(0, 50), span=st.integers(1, 50), place=st.integers(0, 50), higher=st.booleans())
def test_score_is_relative_position_of_number(low, span, place, higher):
    place = min(place, span)
    rubric = [{"range": [low, low], "outcome": "o"}, {"range": [low + 1, low + span], "outcome": "o"}]
    mark = played(GEval(steps=["s"], rubric=rubric, higher_is_better=higher), lambda _: scored(low + place))
    assert mark.score == place / span
    assert mark.rubric_score == low + place
    assert mark.success is (place / span >= 0.5 if higher else place / span <= 0.5)


@given(votes=st.lists(st.integers(0, 10), min_size=2, max_size=7))
def test_sampled_score_lies_between_the_answers_and_is_their_mean(votes):
    metric = GEval(steps=["s"], scoring="samples", samples=len(votes))
    mark = played(metric, lambda ask: scored(votes[ask.sample]))
    assert min(votes) <= mark.details["rubric_value"] <= max(votes)
    assert mark.score == pytest.approx(sum(votes) / len(votes) / 10)
    assert abs(mark.rubric_score - mark.details["rubric_value"]) <= 0.5 + 1e-9


@given(weights=st.dictionaries(st.integers(0, 9), shares, min_size=1), outside=shares)
def test_expected_value_is_mean_over_rubric_with_its_mass(weights, outside):
    total = sum(weights.values()) + outside
    alternatives = tuple((str(value), math.log(share / total)) for value, share in weights.items())
    chosen = str(next(iter(weights)))
    tokens = (
        Token('{"reason": "r", "score": ', 0.0),
        Token(chosen, dict(alternatives)[chosen], (*alternatives, ("?", math.log(outside / total)))),
        Token("}", 0.0),
    )
    mark = played(GEval(steps=["s"], scoring="logprobs"), lambda _: scored(chosen, tokens=tokens))
    covered = sum(weights.values())
    expected = sum(value * share for value, share in weights.items()) / covered
    assert mark.details["rubric_value"] == pytest.approx(expected)
    assert mark.details["mass"] == pytest.approx(covered / total)


@given(ends=st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True))
def test_adjacent_bands_are_accepted_in_any_order_and_gap_is_error(ends):
    marks = sorted(ends)
    rubric = [{"range": [low, high - 1], "outcome": "o"} for low, high in pairwise(marks)] + [
        {"range": [marks[-1], marks[-1]], "outcome": "o"}
    ]
    found = parse_bands(rubric[::-1], metric="m")
    assert [band.range[0] for band in found] == marks
    assert isinstance(played(GEval(steps=["s"], rubric=rubric), lambda _: scored(marks[0])), MetricScore)
