"""Cascades of judges, and how sure a judge is by its log-probabilities and its repeats."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from deemster.errors import ConfigurationError
from deemster.judges._grading_prompt import CriterionView
from deemster.judges._log_probabilities import VerdictProbabilities
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.judge_cascade import Cascade, verdict_probability
from deemster.judges.judge_panel import Judge
from deemster.judges.vote import Vote
from deemster.records import Answer, NoAnswer, Token
from deemster.rubrics import Criterion, Option
from tests.builders.arguments import grader_arguments
from tests.judges.make_grader import DEPTH, FACTS, RUBRIC, case, finals, reply, subject
from tests.judges.play import answered

CHEAP, ONE, TWO = Judge("cheap", "cheap"), Judge("one", "one"), Judge("two", "two")
BINARY = Criterion("Is it right?", name="facts")
SCALE = Criterion(
    "How deep?", name="depth", options=[Option(label, value) for label, value in zip("abc", (0, 0.5, 1), strict=True)]
)


def tokens(*parts):
    """Tokens: a text that is certain, or a list of texts with their probabilities, the first of which was written."""
    return tuple(
        Token(part, 0.0, ((part, 0.0),))
        if isinstance(part, str)
        else Token(part[0][0], math.log(part[0][1]), tuple((text, math.log(p)) for text, p in part))
        for part in parts
    )


def answer_in(*parts):
    given = tokens(*parts)
    return Answer(text="".join(token.text for token in given), tokens=given)


# probabilities


@pytest.mark.parametrize(
    ("parts", "code", "p"),
    [
        (['{"reason":"r","verdict":"', [("MET", 0.8), ("UN", 0.15), ("CAN", 0.05)], '"}'], 0, 0.8 / 0.95),
        (['{"reason":"r","verdict":', [(' "MET', 0.6), (' "UN', 0.4)], '"}'], 0, 0.6),
        (['{"reason":"r","verdict": "', [("UN", 0.5), ("MET", 0.5)], [("MET", 0.9), ("known", 0.1)], '"}'], 1, 0.5),
        # Half a word decides once nothing else begins like it; a quote alone decides nothing.
        (['{"verdict":', [('"', 0.9), ("null", 0.1)], [("M", 0.75), ("U", 0.25)], "ET", '"}'], 0, 0.75),
        (['{"verdict"', ':"', [("UNMET", 0.7), ("MET", 0.2), ("met", 0.1)], '"}'], 1, 0.2 / 0.9),
    ],
)
def test_probability_of_met_is_its_share_of_both_verdicts(parts, code, p):
    (found,) = VerdictProbabilities(answer_in(*parts)).probabilities(CriterionView(0, BINARY, ()), code)
    assert found == pytest.approx(p)


def test_options_are_weighed_in_the_order_of_the_rubric_and_an_abstention_weighs_nothing():
    shown = CriterionView(0, SCALE, (2, 0, 1, 3))
    parts = ['{"reason":"r","option":', [("2", 0.5), ("1", 0.3), ("4", 0.2)], "}"]
    assert VerdictProbabilities(answer_in(*parts)).probabilities(shown, 0) == pytest.approx((0.625, 0, 0.375))


def test_numbers_of_several_digits_are_followed_token_by_token():
    many = Criterion("Which?", name="x", options=[Option(f"o{at}", at / 11) for at in range(12)])
    shown = CriterionView(0, many, tuple(range(12)))
    parts = ['{"option": ', [("1", 0.8), ("3", 0.2)], [("}", 0.5), ("0", 0.25), ("2", 0.25)]]
    found = VerdictProbabilities(answer_in(*parts)).probabilities(shown, 0)
    expected = {0: 0.4, 9: 0.2, 11: 0.2, 2: 0.2}
    assert found == pytest.approx(tuple(expected.get(at, 0) for at in range(12)))


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        # The tokens give another verdict than the text that was read, or none, or the verdict twice.
        (['{"verdict":"', [("UNMET", 0.5), ("MET", 0.5)], '"}'], 0),
        (['{"reason":"r"}'], 0),
        (['{"verdict":"MET","verdict":"', [("MET", 0.9)], '"}'], 0),
        (['{"verdict":"', [("MET", 1e9)], '"}'], 0),
        (['{"verdict":"', [("CANNOT_ASSESS", 0.9), ("MET", 0.1)], '"}'], 2),
    ],
)
def test_verdict_without_a_readable_probability_has_none(parts, code):
    assert VerdictProbabilities(answer_in(*parts)).probabilities(CriterionView(0, BINARY, ()), code) is None
    assert (
        VerdictProbabilities(Answer(text='{"verdict":"MET"}')).probabilities(CriterionView(0, BINARY, ()), code) is None
    )


def test_verdict_quoted_in_reason_is_ignored():
    quoted = json.dumps({"reason": 'It says "verdict": "UNMET".'})[:-1]
    parts = [quoted, ', "verdict": "', [("MET", 0.9), ("UN", 0.1)], '"}']
    assert VerdictProbabilities(answer_in(*parts)).probabilities(CriterionView(0, BINARY, ()), 0) == pytest.approx(
        (0.9,)
    )


def weighed(ask, label, p):
    """A reply that gives its verdict a probability, and the rest to the verdict or option that comes next."""
    text = reply(ask, label).text
    head, mark, value = text.rpartition(": ")
    written = value.removesuffix("}")
    other = '"UNMET"' if written == '"MET"' else '"MET"' if written.startswith('"') else str(int(written) % 3 + 1)
    given = tokens(head + mark, [(written, p), (other, max(1 - p, 1e-12))], "}")
    return Answer(text=text, tokens=given)


def test_grader_with_probabilities_requests_and_keeps_them():
    asked = []

    def answer(ask):
        asked.append(ask.logprobs)
        return weighed(ask, {"facts": "MET", "depth": "fair"}[subject(ask)], 0.75)

    rubric = {"criteria": [FACTS, DEPTH]}
    item = answered(CriterionGrader(ONE, probabilities=True).script(case(rubric=rubric)), answer)[0]
    assert asked == [20, 20]
    first, second = (each.votes[0].probabilities for each in item.criteria)
    assert first == pytest.approx((0.75,))
    assert second[1] == pytest.approx(max(second))
    assert sum(second) == pytest.approx(1)


def test_per_item_reply_has_probabilities_per_criterion():
    rubric = {"criteria": [FACTS, {**FACTS, "name": "more", "requirement": "More."}]}

    def entry(name):
        return f'{{"criterion":"{name}","reason":"r","verdict":"'

    def answer(_):
        return answer_in(
            '{"verdicts":[' + entry("more"),
            [("MET", 0.9), ("UN", 0.1)],
            '"},' + entry("facts"),
            [("UN", 0.6), ("MET", 0.4)],
            'MET"}]}',
        )

    script = CriterionGrader(ONE, probabilities=True, calls="per_item").script(case(rubric=rubric))
    item = answered(script, answer)[0]
    assert finals(item) == ["UNMET", "MET"]
    assert [each.votes[0].probabilities[0] for each in item.criteria] == pytest.approx([0.4, 0.9])


# cascades


def played(cheap, strong, *, rubric=RUBRIC, judges=(ONE, TWO), **options):
    """The graded item of a cascade, and the requests by judge."""
    asked = []
    settings = {key: options.pop(key) for key in ("unsure_below", "by", "repeats") if key in options}

    def answer(ask):
        name = subject(ask, rubric)
        asked.append((ask.role, name))
        if ask.role == "cheap":
            said = cheap(name, ask.sample) if callable(cheap) else cheap[name]
        else:
            said = strong[name][ask.role] if isinstance(strong[name], dict) else strong[name]
        if isinstance(said, tuple):
            return weighed(ask, *said)
        return reply(ask, said) if isinstance(said, str) else said

    grader = CriterionGrader(Cascade(CHEAP, judges, **settings), **grader_arguments(**options))
    return answered(grader.script(case(rubric=rubric)), answer)[0], asked


SURE = {"facts": ("MET", 0.9), "fluff": ("UNMET", 0.9), "depth": ("fair", 0.9), "tone": ("warm", 0.9)}
STRONG = {"facts": "UNMET", "fluff": "MET", "depth": "poor", "tone": "cold"}


def test_sure_cheap_judge_is_the_only_one_asked():
    item, asked = played(SURE, STRONG)
    assert finals(item) == ["MET", "UNMET", "fair", "warm"]
    assert {role for role, _ in asked} == {"cheap"}
    assert item.judge_scores["one"] is None


@pytest.mark.parametrize("said", [("MET", 0.7), "MET", "CANNOT_ASSESS", NoAnswer(cause="model_failed", message="No.")])
def test_unsure_abstaining_or_failed_cheap_judge_escalates_and_both_votes_are_kept(said):
    item, asked = played({**SURE, "facts": said}, STRONG)
    assert finals(item) == ["UNMET", "UNMET", "fair", "warm"]
    assert [role for role, name in asked if name == "facts"] == ["cheap", "one", "two"]
    assert [vote.judge for vote in item.criteria[0].votes] == ["cheap", "one", "two"]
    assert [len(each.votes) for each in item.criteria] == [3, 1, 1, 1]


def test_cheap_judge_has_no_vote_after_escalation():
    # With the cheap judge's vote MET would have had two of three.
    item, _ = played({**SURE, "facts": ("MET", 0.5)}, {**STRONG, "facts": {"one": "MET", "two": "UNMET"}})
    assert finals(item)[0] == "UNMET"


def test_strong_judges_that_all_fail_leave_the_criterion_without_a_verdict():
    lost = NoAnswer(cause="model_failed", message="No.")
    item, _ = played({**SURE, "facts": ("MET", 0.5)}, {**STRONG, "facts": lost})
    assert finals(item) == [None, "UNMET", "fair", "warm"]
    assert item.criteria[0].failed


@pytest.mark.parametrize(("quorum", "lost", "below"), [(None, "one", ("facts",)), (1, "one", ()), (None, "cheap", ())])
def test_quorum_of_a_cascade_counts_the_judges_that_decide(quorum, lost, below):
    down = NoAnswer(cause="model_failed", message="No.")
    votes = {"cheap": ("MET", 0.5), "one": "UNMET", "two": "UNMET", lost: down}
    item, _ = played({**SURE, "facts": votes["cheap"]}, {**STRONG, "facts": votes}, quorum=quorum)
    assert (item.below_quorum, item.score is None) == (below, bool(below))
    assert finals(item)[0] == "UNMET"


def test_consistency_is_share_of_equal_answers():
    def cheap(name, sample):
        return "MET" if name == "facts" else "fair" if sample < 3 else "poor"

    rubric = {"criteria": [FACTS, DEPTH]}
    item, asked = played(cheap, STRONG, rubric=rubric, by="consistency", repeats=5, judges=ONE, unsure_below=0.7)
    assert [name for role, name in asked if role == "one"] == ["depth"]
    assert finals(item) == ["MET", "poor"]
    assert len(item.criteria[0].votes) == 5


def test_confidence_equal_to_threshold_is_not_escalated():
    item, _ = played({**SURE, "facts": ("UNMET", 0.59)}, {**STRONG, "facts": "MET"}, unsure_below=0.59)
    assert finals(item)[0] == "UNMET"


def test_per_item_cascade_escalates_only_unsure_criteria():
    rubric = {"criteria": [FACTS, {**FACTS, "name": "more", "requirement": "More."}]}
    asked = []

    def answer(ask):
        names = [name for name in ("facts", "more") if f'"{name}"' in ask.messages[1].content]
        asked.append((ask.role, names))
        entries = [
            f'{{"criterion":"{name}","reason":"r","verdict":"' + ("MET" if ask.role == "cheap" else "UNMET") + '"}'
            for name in names
        ]
        if ask.role != "cheap":
            return Answer(text=f'{{"verdicts":[{",".join(entries)}]}}')
        head, tail = entries[0].split("MET"), entries[1].split("MET")
        return answer_in(
            '{"verdicts":[' + head[0],
            [("MET", 0.95), ("UN", 0.05)],
            f"{head[1]},{tail[0]}",
            [("MET", 0.6), ("UN", 0.4)],
            tail[1] + "]}",
        )

    grader = CriterionGrader(Cascade(CHEAP, ONE), calls="per_item")
    item = answered(grader.script(case(rubric=rubric)), answer)[0]
    assert asked == [("cheap", ["facts", "more"]), ("one", ["more"])]
    assert finals(item) == ["MET", "UNMET"]


def test_mean_probability_of_several_answers_counts():
    votes = [Vote(judge="c", verdict="MET", probabilities=(0.9,)), Vote(judge="c", verdict="MET", probabilities=(0.6,))]
    assert verdict_probability(BINARY, votes, 0) == pytest.approx(0.75)
    assert verdict_probability(BINARY, votes, 1) == pytest.approx(0.25)
    assert verdict_probability(BINARY, [Vote(judge="c", verdict="MET")], 0) is None


def test_settings_distinguish_cascade_from_panel():
    panel, cascade = CriterionGrader([CHEAP, ONE]), CriterionGrader(Cascade(CHEAP, ONE))
    assert panel.judges == cascade.judges
    assert panel.settings != cascade.settings
    assert json.loads(json.dumps(cascade.settings))["cascade"]["unsure_below"] == 0.8
    assert cascade.count_requests(case().rubric) == 8
    assert CriterionGrader(Cascade(CHEAP, ONE, by="consistency")).count_requests(case().rubric) == 24


def test_item_without_any_question_has_failed_votes_of_the_cheap_judge_only():
    item = CriterionGrader(Cascade(CHEAP, ONE, by="consistency", repeats=2)).grade_unasked(case(), "stopped")
    assert [vote.judge for vote in item.criteria[0].votes] == ["cheap", "cheap"]
    assert item.score is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strong": ()}, "is empty"),
        ({"strong": 3}, "one or more judges"),
        ({"strong": (CHEAP,)}, "Two judges have the id `cheap`"),
        ({"unsure_below": 1.5}, "cascade.unsure_below must be a number from 0 to 1, not 1.5"),
        ({"unsure_below": True}, "cascade.unsure_below must be a number from 0 to 1, not a boolean"),
        ({"by": "probabilty"}, "Did you mean `probability`?"),
        ({"by": "consistency", "repeats": 1}, "from 2 to 100"),
        ({"repeats": 0}, "from 1 to 100"),
    ],
)
def test_cascade_with_a_setting_out_of_range_is_refused(given, message):
    with pytest.raises(ConfigurationError) as error:
        Cascade(**{"cheap": CHEAP, "strong": (ONE,), **given})
    assert message in str(error.value)


def test_cascade_by_consistency_at_temperature_0_is_refused():
    with pytest.raises(ConfigurationError, match="needs a `temperature` above 0"):
        CriterionGrader(Cascade(CHEAP, ONE, by="consistency"), temperature=0)


def test_equal_cascades_compare_equal():
    cascade = Cascade(CHEAP, [ONE, TWO])
    assert cascade == Cascade(CHEAP, (ONE, TWO), repeats=1)
    assert msgspec.structs.replace(cascade, unsure_below=1).unsure_below == 1.0
