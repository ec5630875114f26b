"""The grader, played by hand: votes become verdicts and scores, and failures do not."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import derive
from deemster.errors import ConfigurationError
from deemster.judges import QuestionSettings
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.few_shot import FewShot
from deemster.judges.grading_case import make_case
from deemster.judges.judge_panel import Judge
from deemster.judges.vote import vote_failure
from deemster.records import Answer, MetricScore, NoAnswer, Unscored, Usage
from deemster.records.marks import CAUSES
from deemster.report.grading_result import Grading, JudgeGrading
from deemster.rubrics import LengthPenalty, Rules
from tests.builders.arguments import grader_arguments
from tests.judges.make_grader import (
    DEPTH,
    FACTS,
    FLUFF,
    RUBRIC,
    TONE,
    case,
    dataset,
    finals,
    graded,
    grader,
    reply,
    says,
    subject,
)
from tests.judges.play import DOWN, answered, play

GOOD = {"facts": "MET", "fluff": "UNMET", "depth": "fair", "tone": "warm"}
LETTERS = "abcd"


def only(*criteria):
    return {"criteria": list(criteria)}


def each(*labels):
    """The reply of each judge of a panel."""
    return dict(zip(LETTERS, labels, strict=False))


def test_one_judge_gives_verdict_per_criterion_and_score():
    item = graded(GOOD)
    assert finals(item) == ["MET", "UNMET", "fair", "warm"]
    assert item.score == pytest.approx(15 / 18)
    assert item.raw_score == pytest.approx(15)
    assert [criterion.option_index for criterion in item.criteria] == [None, None, 1, 1]
    assert item.judge_scores == {"a": item.score}
    assert (item.error, item.unscored, item.cannot_assess_count) == (None, None, 0)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["MET", "MET", "fair", "warm"], [11 / 18] * 4),
        (["MET", "CANNOT_ASSESS", "n-a", "curt"], [0.8667, 0.5778, 0.7444, 0.3556]),
        (["CANNOT_ASSESS", "MET", "n-a", "curt"], [0.0, 0.0, 0.2444, 0.0]),
    ],
)
def test_abstentions_count_by_strategy(verdicts, expected):
    said = dict(zip(GOOD, verdicts, strict=True))
    for strategy, score in zip(("skip", "zero", "partial", "fail"), expected, strict=True):
        assert graded(said, abstention=strategy).score == pytest.approx(score, abs=5e-5)


def test_partial_credit_is_share_of_weight():
    rubric = only(FACTS, {**FACTS, "name": "more", "requirement": "And more?"})
    said = {"facts": "MET", "more": "CANNOT_ASSESS"}
    item = graded(lambda ask: says(said)(ask) if "claim" in ask.messages[1].content else reply(ask, "CANNOT_ASSESS"),
                  rubric=rubric, abstention="partial", partial_credit=0.2)  # fmt: skip
    assert item.score == pytest.approx(0.6)


def test_score_that_is_not_normalised_is_the_sum():
    assert graded({**GOOD, "fluff": "MET"}, normalize=False).score == pytest.approx(11)


@pytest.mark.parametrize(
    ("rule", "sign", "label", "value"),
    [
        ("mean", 1, "fair", 0.625),
        ("median", 1, "fair", 0.75),
        ("weighted_mean", 1, "good", 5.5 / 7),
        ("mode", 1, "good", 1.0),
        ("min", 1, "poor", 0.0),
        ("max", 1, "good", 1.0),
        ("mean", -1, "fair", 0.625),
        ("median", -1, "good", 0.75),
        ("weighted_mean", -1, "good", 5.5 / 7),
        ("mode", -1, "good", 1.0),
        ("min", -1, "poor", 0.0),
        ("max", -1, "good", 1.0),
    ],
)
def test_panel_combines_ordinal_votes_by_rule(rule, sign, label, value):
    judges = [Judge(name, name, weight) for name, weight in zip(LETTERS, (1, 1, 1, 4), strict=True)]
    rubric = only({**DEPTH, "weight": 6 * sign})
    panel = CriterionGrader(judges, rules=Rules(ordinal_aggregation=rule))
    answer = says({"depth": each("poor", "fair", "good", "good")})
    item, asked = answered(panel.script(case(rubric=rubric)), answer)
    (criterion,) = item.criteria
    assert (criterion.verdict, criterion.aggregated_value) == (label, pytest.approx(value))
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("options", "votes", "sign", "verdict"),
    [
        ({}, ["MET", "UNMET"], 1, "UNMET"),
        ({}, ["MET", "UNMET"], -1, "MET"),
        ({}, ["MET", "MET", "UNMET"], 1, "MET"),
        ({}, ["CANNOT_ASSESS", "CANNOT_ASSESS", "MET"], 1, "MET"),
        ({}, ["CANNOT_ASSESS", "CANNOT_ASSESS"], 1, "CANNOT_ASSESS"),
        ({"aggregation": "unanimous"}, ["MET", "MET", "UNMET"], 1, "UNMET"),
        ({"aggregation": "any"}, ["UNMET", "UNMET", "MET"], 1, "MET"),
    ],
)
def test_panel_combines_binary_votes_by_rule(options, votes, sign, verdict):
    rubric = only({**FACTS, "weight": 10 * sign})
    item = graded({"facts": each(*votes)}, judges=LETTERS[: len(votes)], rubric=rubric, **options)
    assert finals(item) == [verdict]


def test_weighted_vote_outweighs_two():
    judges = [Judge("a", "a", 3), Judge("b", "b"), Judge("c", "c")]
    answer = says({"facts": each("MET", "UNMET", "UNMET")})
    for rule, verdict in (("weighted", "MET"), ("majority", "UNMET")):
        panel = CriterionGrader(judges, rules=Rules(aggregation=rule))
        assert finals(answered(panel.script(case(rubric=only(FACTS))), answer)[0]) == [verdict]


@pytest.mark.parametrize(
    ("rule", "votes", "verdict"),
    [
        ("mode", ["warm", "warm", "cold"], "warm"),
        ("mode", ["warm", "cold"], "cold"),
        ("unanimous", ["warm", "warm"], "warm"),
        ("unanimous", ["warm", "cold"], "Cannot assess / not applicable"),
    ],
)
def test_panel_combines_nominal_votes_by_rule(rule, votes, verdict):
    said = {"tone": each(*votes)}
    item = graded(said, judges=LETTERS[: len(votes)], rubric=only(TONE), nominal_aggregation=rule)
    assert finals(item) == [verdict]


def test_criterion_may_have_a_rule_of_its_own():
    rubric = only({**FACTS, "aggregation": "any"})
    assert finals(graded({"facts": each("MET", "UNMET", "UNMET")}, judges="abc", rubric=rubric)) == ["MET"]


def test_agreement_is_the_share_of_votes_that_equal_the_verdict_and_failed_ones_do_not_count():
    said = {"facts": each("MET", "UNMET", "MET", DOWN), "tone": each("warm", "warm", DOWN, DOWN)}
    item = graded(said, judges=LETTERS, rubric=only(FACTS, TONE))
    assert [criterion.agreement for criterion in item.criteria] == [pytest.approx(2 / 3), 1.0]
    assert item.mean_agreement == pytest.approx(5 / 6)


def test_reasons_are_joined_and_reasoning_is_kept_apart():
    answer = says(GOOD, reason="Seen.", thinking="Hm.")
    item = graded(answer, judges="ab")
    assert item.criteria[0].reason == "a: Seen.\nb: Seen."
    assert [vote.thinking for vote in item.criteria[0].votes] == ["Hm.", "Hm."]


def test_usage_and_cost_add_up_by_vote_criterion_and_item():
    usage = Usage(prompt_tokens=100, completion_tokens=10, cost_usd=Decimal("0.5"))
    item = graded(says(GOOD, usage=usage), judges="ab")
    assert {vote.cost_usd for each in item.criteria for vote in each.votes} == {Decimal("0.5")}
    assert [criterion.cost_usd for criterion in item.criteria] == [1, 1, 1, 1]
    assert (item.cost_usd, item.usage.prompt_tokens, item.usage.calls) == (4, 800, 8)


def test_cached_answer_costs_nothing_and_an_unpriced_one_has_no_cost():
    hit = Usage(calls=0, cached_calls=1, prompt_tokens=100, cost_usd=0)
    assert graded(says(GOOD, usage=hit)).cost_usd == 0
    assert graded(says(GOOD, usage=Usage(prompt_tokens=100))).cost_usd is None


# failures


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_of_a_failure_has_its_category(cause):
    known = {"model_failed": "infrastructure", "rate_limited": "infrastructure", "not_run": "infrastructure"}
    assert vote_failure(cause, "m").category == {**known, "unreadable": "parse"}.get(cause, "unknown")


@pytest.mark.parametrize(
    ("cause", "verdict"),
    [
        ("model_failed", "MET"),
        ("rate_limited", "MET"),
        ("not_run", "MET"),
        ("unreadable", "MET"),
        ("no_usage", "UNMET"),
    ],
)
def test_failed_vote_abstains_and_one_of_unknown_cause_is_the_worst_case(cause, verdict):
    said = {"facts": each("MET", NoAnswer(cause=cause, message="No."))}
    item = graded(said, judges="ab", rubric=only(FACTS))
    assert finals(item) == [verdict]
    lost = item.criteria[0].votes[1]
    assert (lost.verdict, lost.value, lost.abstained) == (None, None, False)
    assert lost.failure.message == "No."
    assert lost.failure.cause == cause


def test_criterion_whose_every_vote_failed_is_failed_and_has_no_verdict():
    item = graded({**GOOD, "facts": DOWN}, judges="ab")
    assert [criterion.failed for criterion in item.criteria] == [True, False, False, False]
    assert (item.criteria[0].verdict, item.criteria[0].agreement) == (None, None)
    assert item.score == pytest.approx(5 / 8)
    assert item.error is None


def test_item_with_all_criteria_failed_has_no_score_but_reason():
    item = graded(dict.fromkeys(GOOD, DOWN), judges="ab", abstention="fail")
    assert item.score is None
    assert item.raw_score is None
    assert item.unscored == item.error == "Every call failed (8 calls): The server answered 500."
    assert item.judge_scores == {"a": None, "b": None}


def test_item_that_lacks_the_vote_of_a_panel_member_has_verdicts_and_no_score():
    item = graded({**GOOD, "facts": each("MET", DOWN), "tone": each("warm", DOWN)}, judges="ab")
    assert (item.score, item.raw_score, item.error) == (None, None, None)
    assert item.below_quorum == ("facts", "tone")
    assert finals(item) == finals(graded(GOOD, judges="ab"))
    assert item.unscored == (
        "facts: 1 of 2 members of the panel spoke; 2 are needed. First: model_failed, The server answered 500. "
        "Votes: a MET. (1 more criterion)"
    )


@pytest.mark.parametrize(("quorum", "is_scored"), [(None, False), (3, False), (2, True), (1, True)])
def test_quorum_says_how_many_votes_of_a_panel_make_a_score(quorum, is_scored):
    said = {**GOOD, "facts": {"a": "MET", "b": DOWN, "c": "MET"}}
    item = graded(said, judges="abc", quorum=quorum)
    assert (item.score is not None, bool(item.below_quorum)) == (is_scored, not is_scored)


def test_quorum_above_the_votes_of_the_panel_is_an_error():
    with pytest.raises(ConfigurationError, match="`quorum` is 5, and at most 4 votes can be cast on a criterion"):
        grader("ab", repeats=2, quorum=5)


def test_settings_hold_a_quorum_that_is_lower_than_the_panel_is_large():
    assert [grader("ab", quorum=quorum).settings.get("quorum") for quorum in (None, 2, 1)] == [None, None, 1]


def test_judge_whose_every_vote_failed_has_no_score_of_its_own():
    said = {name: each(label, DOWN) for name, label in GOOD.items()}
    item = graded(said, judges="ab")
    assert item.judge_scores == {"a": pytest.approx(15 / 18), "b": None}


@given(st.sets(st.sampled_from(list(GOOD))))
def test_failure_changes_no_other_criterion(lost):
    whole = graded(GOOD, judges="ab")
    item = graded({name: each(label, DOWN) if name in lost else label for name, label in GOOD.items()}, judges="ab")
    for before, after in zip(whole.criteria, item.criteria, strict=True):
        assert after.verdict == before.verdict
        if after.criterion not in lost:
            assert after == before


BAD = [
    ("", "empty"),
    ("The verdict is MET.", "not one JSON object"),
    ('{"reason": "r", "verdict": "MET"} {"reason": "r", "verdict": "UNMET"}', "not one JSON object"),
    ('{"reason": "r", "verdict": "MET", "verdict": "UNMET"}', "not one JSON object"),
    ('{"reason": "r", "verdict": "PARTLY"}', "`verdict` is one of"),
    ('{"reason": "r", "verdict": "met"}', "`verdict` is one of"),
    ('{"reason": "r", "verdict": true}', "`verdict` is one of"),
    ('{"reason": " ", "verdict": "MET"}', "`reason`"),
    ('{"verdict": "MET"}', "no `reason`"),
    ('{"reason": "r", "verdict": "MET", "score": 1}', "unknown keys"),
    ('{"reason": "r", "option": 1}', "no `verdict`"),
    ('[{"reason": "r", "verdict": "MET"}]', "not one JSON object"),
    ('{"reason": "r", "verd', "not one JSON object"),
    ("I cannot judge this.", "not one JSON object"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_unreadable_verdict_is_retried_once_then_parse_failure(text, message):
    script = grader().script(case(rubric=only(FACTS)))
    item, asked = play(script, [Answer(text=text)], [Answer(text=text)])
    (vote,) = item.criteria[0].votes
    assert vote.failure.category == "parse"
    assert message in vote.failure.message
    assert [[ask.again for ask in each] for each in asked] == [[0], [1]]


@pytest.mark.parametrize("number", ["0", "5", "-1", "1.5", '"1"', "true", "null", "1e400", "[1]"])
def test_number_off_the_options_is_a_parse_failure(number):
    text = f'{{"reason": "r", "option": {number}}}'
    item, _ = play(grader().script(case(rubric=only(DEPTH))), [Answer(text=text)], [Answer(text=text)])
    assert item.criteria[0].votes[0].failure.category == "parse"
    assert item.criteria[0].failed


def test_readable_second_reply_counts_and_both_are_charged():
    usage = Usage(prompt_tokens=7, completion_tokens=1)
    ask_of = {}

    def answer(ask):
        ask_of[ask.again] = ask
        return reply(ask, "MET", usage=usage) if ask.again else Answer(text="Well.", usage=usage)

    item = graded(answer, rubric=only(FACTS))
    assert finals(item) == ["MET"]
    assert item.usage.prompt_tokens == 14
    assert ask_of[0].messages == ask_of[1].messages


def test_one_code_fence_is_removed():
    text = '```json\n{"reason": "r", "verdict": "UNMET"}\n```'
    item, _ = play(grader().script(case(rubric=only(FACTS))), [Answer(text=text)])
    assert finals(item) == ["UNMET"]


# whole rubrics in one call


def entries(ask, verdicts, **changes):
    """A reply about a whole rubric: labels by criterion, an entry as it is where it is a map, none where it is None."""
    text = ask.messages[1].content
    found = []
    for name, said in verdicts.items():
        if said is None:
            continue
        if not isinstance(said, str):
            found.append(said)
            continue
        part = text[text.index(f'Criterion "{name}":') :].partition("Criterion ")[2].partition('\n\nCriterion "')[0]
        lines = [line for line in part.splitlines() if line[:1].isdigit()]
        number = next((int(line.partition(".")[0]) for line in lines if line.partition(". ")[2] == said), None)
        key = {"verdict": said} if number is None else {"option": number}
        found.append({"criterion": name, "reason": "r", **key})
    return Answer(text=json.dumps({"verdicts": found, **changes}), usage=Usage(prompt_tokens=40))


def test_per_item_call_splits_usage_over_criteria():
    item, asked = answered(grader("ab", calls="per_item").script(case()), lambda ask: entries(ask, GOOD))
    assert finals(item) == ["MET", "UNMET", "fair", "warm"]
    assert len(asked) == 2
    assert [vote.usage.prompt_tokens for each in item.criteria for vote in each.votes] == [10] * 8
    assert item.usage.prompt_tokens == 80


@pytest.mark.parametrize(
    "bad",
    [
        None,
        {"criterion": "depth", "reason": "r", "option": 9},
        {"criterion": "depth", "reason": "r", "verdict": "MET"},
        {"criterion": "depth", "reason": "r", "option": 1, "score": 1},
        {"criterion": "deepness", "reason": "r", "option": 1},
        {"criterion": "facts", "reason": "r", "verdict": "MET"},
        "depth",
        7,
    ],
    ids=str,
)
def test_bad_entry_fails_its_criterion_and_no_other(bad):
    said = {**GOOD, "depth": bad}
    if bad == "depth":
        said["depth"] = ["depth"]
    item, asked = answered(grader(calls="per_item").script(case()), lambda ask: entries(ask, said))
    lost = [criterion.criterion for criterion in item.criteria if criterion.failed]
    # An entry under the name of another is the second one about that.
    doubled = isinstance(bad, dict) and bad["criterion"] == "facts"
    assert lost == (["facts", "depth"] if doubled else ["depth"])
    assert len(asked) == 2


def test_readable_entries_of_first_reply_are_kept():
    def answer(ask):
        said = {**GOOD, "facts": "UNMET"} if ask.again else {**GOOD, "depth": None}
        return entries(ask, said)

    item = answered(grader(calls="per_item").script(case()), answer)[0]
    assert finals(item) == ["MET", "UNMET", "fair", "warm"]


@pytest.mark.parametrize("text", ["{}", '{"verdicts": {}}', "[]", '{"verdicts": [], "more": 1}'])
def test_bad_reply_fails_every_criterion(text):
    item = answered(grader(calls="per_item").script(case()), lambda _: Answer(text=text))[0]
    assert all(criterion.failed for criterion in item.criteria)
    assert item.score is None


# repeats, length, fatal criteria, checks


def test_repeats_become_one_vote_before_panel_aggregation():
    said = {("a", 0): "MET", ("a", 1): "MET", ("a", 2): "UNMET", ("b", 0): "UNMET", ("b", 1): DOWN, ("b", 2): DOWN}

    def answer(ask):
        found = said[ask.role, ask.sample]
        return reply(ask, found) if isinstance(found, str) else found

    item, asked = answered(grader("ab", repeats=3).script(case(rubric=only(FLUFF))), answer)
    assert finals(item) == ["MET"]
    assert item.judge_scores == {"a": 0.0, "b": 1.0}
    assert [(vote.judge, vote.repeat) for vote in item.criteria[0].votes] == list(said)
    assert {ask.temperature for ask in asked} == {0.7}
    assert len({ask.messages for ask in asked}) == len({(ask.role, ask.seed) for ask in asked}) == 6


def test_judge_that_is_asked_once_gets_temperature_0():
    asked = next(grader().script(case()))
    assert {(ask.temperature, ask.sample, ask.role) for ask in asked} == {(0.0, 0, "a")}


def test_length_penalty_applies_and_judges_see_only_output():
    submission = {"submission": {"output": "Paris.", "thinking": "word " * 149}}
    penalty = LengthPenalty(free_budget=100, max_cap=200)
    answer = says(GOOD)
    item, asked = answered(grader(length_penalty=penalty).script(case(submission)), answer)
    assert item.penalty == pytest.approx(0.1649, abs=5e-5)
    assert item.score == pytest.approx(0.6684, abs=5e-5)
    assert item.judge_scores["a"] == item.score
    assert not any("word word" in message.content for ask in asked for message in ask.messages)


def test_failed_fatal_criterion_scores_0_and_undecided_one_is_named():
    rubric = only({**FACTS, "fatal": True}, {**DEPTH, "fatal": True}, TONE)
    item = graded({**GOOD, "facts": "UNMET", "depth": "n-a"}, rubric=rubric)
    assert (item.score, item.failed_fatal, item.unresolved_fatal) == (0.0, ("facts",), ("depth",))
    assert item.raw_score == 2


class Fixed:
    name = "fixed"

    def __init__(self, mark):
        self.mark = mark

    def score(self, sample, output):
        self.seen = sample, output
        return self.mark


def checked(criterion, mark):
    rubric = only({**criterion, "check": {"metric": "fixed", "threshold": 0.6}}, FLUFF)
    metric = Fixed(mark)
    its = case({"submission": "<thinking>x</thinking>Paris.", "metadata": {"k": 1}}, rubric=rubric,
               prompt="Where?", reference_submission="In Paris.")  # fmt: skip
    answer = says(GOOD)
    item, asked = answered(grader("ab").script(its, checks={its.rubric.criteria[0]: metric}), answer)
    assert len(asked) == 2
    return item, metric


@pytest.mark.parametrize(
    ("criterion", "score", "verdict"),
    [
        (FACTS, 0.6, "MET"),
        (FACTS, 0.59, "UNMET"),
        (DEPTH, 0.7, "fair"),
        (DEPTH, 0.75, "fair"),
        (DEPTH, 0.76, "good"),
        ({**DEPTH, "weight": -6}, 0.75, "good"),
    ],
)
def test_check_metric_answers_criterion_without_judges(criterion, score, verdict):
    item, metric = checked(criterion, MetricScore(score))
    assert finals(item)[0] == verdict
    assert [vote.judge for vote in item.criteria[0].votes] == ["check:fixed"]
    sample, output = metric.seen
    assert (sample.input, sample.expected_output, sample.metadata) == ({"question": "Where?"}, "In Paris.", {"k": 1})
    assert output.text == "Paris."
    # The check is not a judge, so the judges' own scores leave its criterion out.
    assert item.judge_scores == {"a": 1.0, "b": 1.0}


def test_metric_without_a_score_abstains():
    item, _ = checked(FACTS, Unscored("bad_output", "Not JSON."))
    assert (item.criteria[0].verdict, item.criteria[0].abstained, item.score) == ("CANNOT_ASSESS", True, 1.0)
    assert "Not JSON." in item.criteria[0].reason


def test_criterion_with_a_check_and_no_metric_is_refused():
    script = grader().script(case(rubric=only({**FACTS, "check": {"metric": "fixed"}})))
    with pytest.raises(ConfigurationError, match="`facts` is answered by a metric"):
        next(script)


def test_item_without_any_question_has_failed_votes_and_no_score():
    item = grader("ab", repeats=2).grade_unasked(case(), "The budget is exhausted.")
    votes = [vote for criterion in item.criteria for vote in criterion.votes]
    assert len(votes) == 16
    assert {vote.failure.cause for vote in votes} == {"not_run"}
    assert (item.score, item.judge_scores) == (None, {"a": None, "b": None})


# settings


@pytest.mark.parametrize(
    ("judges", "options", "message"),
    [
        ([], {}, "at least one judge"),
        ("ab", {}, "`judges` is one or more"),
        ([Judge("a", "a"), Judge("a", "b")], {}, "Two judges have the id `a`"),
        (["a"], {}, "A judge is a `Judge"),
        (None, {"calls": "per_itme"}, "Did you mean `per_item`"),
        (None, {"aggregation": "mean"}, "aggregation"),
        (None, {"ordinal_aggregation": "majority"}, "ordinal_aggregation"),
        (None, {"nominal_aggregation": "mean"}, "nominal_aggregation"),
        (None, {"abstention": "skipp"}, "Did you mean `skip`"),
        (None, {"partial_credit": 2}, "partial_credit"),
        (None, {"normalize": 1}, "normalize"),
        (None, {"length_penalty": 3}, "`length_penalty` is a `LengthPenalty`"),
        (None, {"shuffle_options": "yes"}, "shuffle_options must be true or false, not text"),
        (None, {"auto_na": None}, "auto_na must be true or false, not null"),
        (None, {"few_shot": 3}, "`few_shot` is a `FewShot`"),
        (None, {"repeats": 0}, "repeats must be a whole number from 1 to 100, not 0"),
        (None, {"repeats": True}, "repeats must be a whole number from 1 to 100, not a boolean"),
        (None, {"seed": 0.5}, "seed must be a whole number, not 0.5"),
        (None, {"repeats": 2, "temperature": 0}, "above 0"),
        (None, {"temperature": float("nan")}, "temperature is nan, which is not a finite number"),
        (None, {"max_tokens": 0}, "max_tokens must be a whole number of at least 1, not 0"),
        (None, {"system_prompt": " "}, "`system_prompt` is blank"),
        (None, {"system_prompt": {"binry": "x"}}, "Did you mean `binary`"),
    ],
)
def test_setting_out_of_range_is_refused(judges, options, message):
    with pytest.raises(ConfigurationError, match=message):
        CriterionGrader([Judge("a", "a")] if judges is None else judges, **grader_arguments(**options))


def test_all_issues_of_a_grader_are_listed_at_once():
    with pytest.raises(ConfigurationError) as error:
        CriterionGrader([], calls="x", repeats=0, questions=QuestionSettings(auto_na="y"))
    assert len(error.value.issues) == 4


@pytest.mark.parametrize(
    "given",
    [("", "m"), ("a", ""), ("check:x", "m"), ("a", "m", 0), ("a", "m", float("inf")), ("a", "m", True), (1, "m")],
)
def test_judge_with_a_bad_id_model_or_weight_is_refused(given):
    with pytest.raises(ConfigurationError):
        Judge(*given)


def test_single_judge_is_accepted_without_list():
    assert CriterionGrader(Judge("a", "m")).judges == (Judge("a", "m"),)
    assert CriterionGrader(Judge("a", "m")).roles == ("m",)


def test_settings_are_json_and_distinguish_graders():
    train = dataset({"submission": "x", "ground_truth": ["MET", None, None, None]})
    kinds = [
        grader(),
        grader("ab"),
        grader(calls="per_item"),
        grader(seed=1),
        grader(system_prompt="Be kind."),
        grader(few_shot=FewShot(train)),
        grader(length_penalty=LengthPenalty(count=len)),
        grader(repeats=2),
        grader(auto_na=False),
    ]
    written = [json.dumps(each.settings) for each in kinds]
    assert len(set(written)) == len(kinds)
    assert json.dumps(grader().settings) == written[0]


# the same numbers as those derived from the votes


LABELS = {
    "facts": ["MET", "UNMET", "CANNOT_ASSESS"],
    "fluff": ["MET", "UNMET", "CANNOT_ASSESS"],
    "depth": ["poor", "fair", "good", "n-a"],
    "tone": ["curt", "warm", "cold", "Cannot assess / not applicable"],
}
NO_ANSWERS = [DOWN, NoAnswer(cause="unreadable", message="No."), NoAnswer(cause="no_usage", message="What?")]
RULES = st.fixed_dictionaries(
    {
        "aggregation": st.sampled_from(["majority", "weighted", "unanimous", "any"]),
        "ordinal_aggregation": st.sampled_from(["mean", "median", "weighted_mean", "mode", "min", "max"]),
        "nominal_aggregation": st.sampled_from(["mode", "weighted_mode", "unanimous"]),
        "abstention": st.sampled_from(["skip", "zero", "partial", "fail"]),
        "normalize": st.booleans(),
        "repeats": st.sampled_from([1, 3]),
    }
)


@given(RULES, st.data())
def test_verdicts_and_scores_follow_from_the_votes(rules, data):
    judges = [Judge("a", "a", 2.0), Judge("b", "b"), Judge("c", "c", 0.5)]
    penalty = LengthPenalty(free_budget=1, max_cap=9)
    panel = CriterionGrader(judges, length_penalty=penalty, quorum=1, **grader_arguments(**rules))
    items = dataset({"submission": "one two three", "id": "x"}, {"submission": "four", "id": "y"})

    def answer(ask):
        said = data.draw(st.one_of(st.sampled_from(LABELS[subject(ask)]), st.sampled_from(NO_ANSWERS)))
        return reply(ask, said) if isinstance(said, str) else said

    found = [answered(panel.script(make_case(items, place)), answer)[0] for place in range(2)]
    cast = Grading(
        items=found,
        judges=tuple(JudgeGrading(id=judge.id, model=judge.model, weight=judge.weight) for judge in judges),
        settings=panel.settings,
        dataset=items,
    ).votes()
    (derived,) = derive(cast)
    for row, item in enumerate(found):
        criteria = cast.blocks[0].rubric.criteria
        codes = [
            None if code < 0 else each.labels[code]
            for each, code in zip(criteria, derived.final.codes[row], strict=True)
        ]
        assert finals(item) == codes
        assert [item.score, *item.judge_scores.values()] == [
            None if score != score else pytest.approx(score)
            for score in (derived.score[row], *derived.judge_scores[row])
        ]


def test_example_rubric_has_every_kind_of_criterion():
    assert [criterion.kind for criterion in case().rubric.criteria] == ["binary", "binary", "ordinal", "nominal"]
    assert len(RUBRIC["criteria"]) == 4
