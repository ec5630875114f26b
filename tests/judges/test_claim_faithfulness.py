"""Faithfulness claim by claim."""

import pytest

from deemster.errors import ConfigurationError
from deemster.judges.claim_faithfulness import ClaimFaithfulness
from deemster.metrics.metric_spec import parse_spec
from deemster.records import Output, Sample, Unscored
from tests.judges.play import DOWN, play, said

SAMPLE = Sample("s", {"question": "When does it open?", "context": ["It opens at nine.", "It is closed on Mondays."]})
OUTPUT = Output("It opens at nine, except on Mondays, and costs 5 euros.")
CLAIMS = ["It opens at nine.", "It is closed on Mondays.", "It costs 5 euros."]


def found(verdict, reason="Because."):
    return said(reason=reason, verdict=verdict)


def judged(*rounds, metric=None, sample=SAMPLE, output=OUTPUT):
    return play((metric or ClaimFaithfulness()).script(sample, output), *rounds)


def test_two_of_three_claims_are_two_thirds():
    verdicts = [found("supported"), found("supported"), found("open", "No price is named.")]
    mark, rounds = judged([said(claims=CLAIMS)], verdicts)
    assert (mark.score, mark.threshold, mark.success) == (2 / 3, 0.8, False)
    counts = {key: mark.details[key] for key in ("claims", "supported", "contradicted", "open")}
    assert counts == {"claims": 3, "supported": 2, "contradicted": 0, "open": 1}
    assert dict(mark.details["findings"][0]) == {
        "claim": "It costs 5 euros.",
        "verdict": "open",
        "reason": "No price is named.",
    }
    assert [len(asks) for asks in rounds] == [1, 3]


def test_claims_are_taken_from_the_answer_and_checked_against_the_context_alone():
    _, rounds = judged([said(claims=CLAIMS[:1])], [found("supported")])
    (first,), (second,) = rounds
    assert OUTPUT.text in first.messages[1].content
    assert "It is closed on Mondays." not in first.messages[1].content
    user = second.messages[1].content
    for label, text in [
        ("passage_1", "It opens at nine."),
        ("passage_2", "It is closed on Mondays."),
        ("claim", CLAIMS[0]),
    ]:
        assert f"<<< {label} " in user
        assert f"\n{text}\n>>> {label} " in user
    assert OUTPUT.text not in user
    assert (first.temperature, first.seed, second.temperature) == (0.0, 42, 0.0)


def test_contradicted_claim_is_not_a_supported_one():
    mark, _ = judged([said(claims=CLAIMS[:2])], [found("contradicted"), found("supported")])
    assert (mark.score, mark.details["contradicted"]) == (0.5, 1)


def test_repeated_claim_counts_once():
    mark, rounds = judged([said(claims=["a", " a ", "b"])], [found("supported"), found("open")])
    assert (mark.score, mark.details["claims"]) == (0.5, 2)
    assert len(rounds[1]) == 2


def test_answer_without_claims_is_unscored():
    mark, _ = judged([said(claims=[])])
    assert mark == Unscored("bad_output", "The answer makes no claim, so that there is no share of supported ones.")


def test_answer_without_claims_scores_one_with_option_best():
    mark, _ = judged([said(claims=[])], metric=ClaimFaithfulness(without_claims="best"))
    assert (mark.score, mark.details["claims"], mark.details["findings"]) == (1.0, 0, ())


def test_too_many_claims_are_too_large():
    mark, rounds = judged([said(claims=CLAIMS)], metric=ClaimFaithfulness(max_claims=2))
    assert mark.cause == "too_large"
    assert len(rounds) == 1


def test_claim_without_a_verdict_leaves_the_mark_unscored():
    mark, _ = judged([said(claims=CLAIMS[:2])], [found("supported"), DOWN])
    assert mark.cause == "model_failed"


def test_only_unreadable_verdict_is_retried():
    mark, rounds = judged([said(claims=CLAIMS[:2])], [found("supported"), found("yes")], [found("open")])
    assert mark.score == 0.5
    assert [ask.again for ask in rounds[2]] == [1]


@pytest.mark.parametrize("claims", ["a", None, [7], ["a", " "], {"a": 1}])
def test_unreadable_claims_are_retried_then_unscored(claims):
    mark, rounds = judged([said(claims=claims)], [said(claims=claims)])
    assert mark.cause == "unreadable"
    assert [ask.again for (ask,) in rounds] == [0, 1]


def test_no_more_than_twenty_findings_are_listed_and_the_unsupported_come_first():
    claims = [f"c{place}" for place in range(25)]
    verdicts = [found("supported")] * 24 + [found("open")]
    mark, _ = judged([said(claims=claims)], verdicts)
    assert (len(mark.details["findings"]), mark.details["truncated"]) == (20, True)
    assert mark.details["findings"][0]["claim"] == "c24"
    assert mark.score == 24 / 25


def test_without_a_context_nothing_is_asked():
    mark, rounds = judged(sample=Sample("s", {"question": "q"}))
    assert (mark.cause, rounds) == ("bad_sample", [])


def test_retrieved_of_output_overrides_context_of_sample():
    output = Output("a", retrieved=[{"id": "d", "text": "p"}])
    mark, _ = judged([said(claims=["a"])], [found("supported")], sample=Sample("s", {"context": []}), output=output)
    assert mark.score == 1.0


def test_prompt_says_that_nothing_was_retrieved():
    _, rounds = judged([said(claims=["a"])], [found("open")], output=Output("a", retrieved=[]))
    assert "no passage was retrieved" in rounds[1][0].messages[1].content


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "`model` of claim-faithfulness"),
        ({"max_claims": 0}, "`max_claims` of claim-faithfulness is a whole number from 1 to 1000"),
        ({"without_claims": "worst"}, "`without_claims` of claim-faithfulness knows no `worst`"),
        ({"max_tokens": 0}, "`max_tokens`"),
    ],
)
def test_invalid_options_are_error(options, message):
    with pytest.raises(ConfigurationError) as error:
        ClaimFaithfulness(**options)
    assert message in str(error.value)


def test_spec_round_trips_and_model_is_used():
    metric = ClaimFaithfulness(model="judge:strict", without_claims="best")
    assert ClaimFaithfulness(**parse_spec(str(metric)).options) == metric
    assert metric.roles == ("judge:strict",)
    assert next(metric.script(SAMPLE, OUTPUT))[0].role == "judge:strict"
