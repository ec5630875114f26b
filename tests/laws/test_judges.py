"""Laws that hold for every judge and every reply."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.judges.pairwise import Pairwise
from deemster.judges.refusal_quality import LABELS, RefusalQuality
from deemster.records import CAUSES, Answer, MetricScore, NoAnswer, Output, Sample, Unscored

SIZES = (1, 2, 3, 5)
SAMPLE = Sample("s", {"question": "q"}, "yes", {"refusal_expected": False, "baseline_output": "no"})
OUTPUT = Output("maybe")
JUDGES = {
    f"{made.alias} {size} {combine}": made(models=[f"m{place}" for place in range(size)], combine=combine)
    for made in (LlmAsJudge, RefusalQuality, Pairwise)
    for size in SIZES
    for combine in ("mean", "median", "majority")
}
few = settings(max_examples=20, deadline=None)

no_answers = st.builds(
    NoAnswer,
    cause=st.sampled_from(["model_failed", "rate_limited", "not_run", "unreadable"]),
    message=st.text(max_size=9),
)
scores = st.floats(0, 1)
verdicts = st.fixed_dictionaries({"reason": st.just("r"), "score": scores}) | st.fixed_dictionaries(
    {"reason": st.just("r"), "refusal": st.sampled_from(LABELS), "score": scores}
)
winners = st.fixed_dictionaries({"reason": st.just("r"), "winner": st.sampled_from(["A", "B", "tie"])})
noise = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(["{}", '{"score": 7}', "0.9"])
answers = st.builds(Answer, text=noise | (verdicts | winners).map(json.dumps), model=st.none() | st.just("m"))


def played(judge, choose):
    """The mark of a judge whose requests a function answers, and the number of rounds."""
    script, rounds = judge.script(SAMPLE, OUTPUT), 0
    try:
        requests = next(script)
        while True:
            rounds += 1
            requests = script.send([choose(request) for request in requests])
    except StopIteration as stop:
        return stop.value, rounds


def good(judge, score=0.5):
    extra = {"refusal-quality": {"refusal": "appropriate", "score": score}, "pairwise": {"winner": "tie"}}
    return Answer(text=json.dumps({"reason": "r", **extra.get(judge.alias, {"score": score})}))


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
@few
@given(data=st.data())
def test_any_reply_ends_with_mark_after_at_most_two_rounds(judge, data):
    mark, rounds = played(judge, lambda _: data.draw(answers | no_answers))
    assert rounds <= 2
    assert isinstance(mark, (MetricScore, Unscored))
    if isinstance(mark, MetricScore):
        assert 0 <= mark.score <= 1
        assert mark.details["prompt_hash"] == judge.prompt_hash
    else:
        assert mark.cause in CAUSES


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_panel_without_answers_is_unscored(judge):
    for cause in ("model_failed", "rate_limited", "not_run", "unreadable"):
        mark, rounds = played(judge, lambda _, cause=cause: NoAnswer(cause=cause, message="No."))
        alone = len(judge.models) == 1 or cause == "not_run"
        assert mark.cause == (cause if alone else "no_quorum")
        assert rounds == 1


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_score_needs_every_member_of_the_panel(judge):
    size = len(judge.models)
    for speaking in range(size + 1):
        voices = set(judge.models[:speaking])
        mark, _ = played(
            judge,
            lambda ask, voices=voices: (
                good(judge) if ask.role in voices else NoAnswer(cause="model_failed", message="")
            ),
        )
        assert isinstance(mark, MetricScore) == (speaking == size)


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_unanimous_panel_gives_common_vote(judge):
    mark, rounds = played(judge, lambda _: good(judge))
    assert (mark.score, rounds) == (0.5, 1)
    assert mark.details.get("agreement", 1.0) == 1.0


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_same_pair_gives_same_request(judge):
    assert next(judge.script(SAMPLE, OUTPUT)) == next(judge.script(SAMPLE, OUTPUT))
