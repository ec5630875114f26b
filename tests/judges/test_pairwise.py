"""Pairwise judging: both orders, and a preference that flips is none."""

import pytest

from deemster.errors import ConfigurationError
from deemster.judges.pairwise import Pairwise
from deemster.metrics.metric_spec import parse_spec
from deemster.records import NoAnswer, Output, Sample
from tests.judges.play import DOWN, OUTPUT, SAMPLE, play, said

BASED = Sample("s", {"question": "q"}, "Paris", {"baseline_output": "Lyon"})


def won(winner, reason="r"):
    return said(reason=reason, winner=winner)


@pytest.mark.parametrize(
    ("ahead", "behind", "score", "consistent", "favoured"),
    [
        ("A", "B", 1.0, True, None),
        ("B", "A", 0.0, True, None),
        ("tie", "tie", 0.5, True, None),
        ("A", "A", 0.5, False, "first"),
        ("B", "B", 0.5, False, "second"),
        ("A", "tie", 0.5, False, None),
        ("tie", "A", 0.5, False, None),
        ("tie", "B", 0.5, False, None),
        ("B", "tie", 0.5, False, None),
    ],
)
def test_only_a_preference_held_in_both_orders_counts(ahead, behind, score, consistent, favoured):
    mark, rounds = play(Pairwise().script(SAMPLE, OUTPUT), [won(ahead), won(behind)])
    assert mark.score == score
    assert (mark.details["consistent"], mark.details["favoured"]) == (consistent, favoured)
    assert mark.details["preference"] == {1.0: "output", 0.5: "tie", 0.0: "other"}[score]
    assert mark.success == (score >= 0.5)
    assert len(rounds) == 1


def test_each_text_is_shown_first_once():
    (asks,) = [next(Pairwise().script(SAMPLE, OUTPUT))]
    first, second = (ask.messages[1].content for ask in asks)
    assert first.index("It is Paris.") < first.index("\nParis\n")
    assert second.index("\nParis\n") < second.index("It is Paris.")
    assert asks[0].messages[0].content[:200] == asks[1].messages[0].content[:200]


@pytest.mark.parametrize(
    ("against", "sample", "side"),
    [
        ("auto", BASED, "baseline"),
        ("auto", SAMPLE, "expected"),
        ("expected", BASED, "expected"),
        ("baseline", BASED, "baseline"),
    ],
)
def test_output_is_compared_with_baseline_or_expected_output(against, sample, side):
    judge = Pairwise(against=against)
    mark, rounds = play(judge.script(sample, OUTPUT), [won("A"), won("B")])
    assert mark.details["against"] == side
    shown = "Lyon" if side == "baseline" else "Paris"
    assert f"\n{shown}\n>>> answer_b" in rounds[0][0].messages[1].content


@pytest.mark.parametrize(
    ("judge", "sample", "cause"),
    [
        (Pairwise(), Sample("s", {}, None), "no_expected"),
        (Pairwise(against="baseline"), SAMPLE, "bad_sample"),
        (Pairwise(), Sample("s", {}, "x", {"baseline_output": 7}), "bad_sample"),
        (Pairwise(), Sample("s", {}, "x", {"baseline_output": "\ud800"}), "bad_sample"),
    ],
)
def test_without_anything_to_compare_with_nothing_is_asked(judge, sample, cause):
    mark, rounds = play(judge.script(sample, OUTPUT))
    assert (mark.cause, rounds) == (cause, [])
    assert len(judge.check(sample)) == 1


def test_equal_texts_tie_without_request():
    mark, rounds = play(Pairwise().script(SAMPLE, Output("Paris")))
    assert (mark.score, mark.details["identical"], rounds) == (0.5, True, [])


@pytest.mark.parametrize("replies", [[won("A"), DOWN], [DOWN, won("B")]])
def test_comparison_without_an_answer_in_one_order_is_unscored(replies):
    mark, _ = play(Pairwise().script(SAMPLE, OUTPUT), replies)
    assert mark.cause == "model_failed"


def test_only_unreadable_order_is_retried():
    mark, rounds = play(Pairwise().script(SAMPLE, OUTPUT), [won("A"), said("B wins")], [won("B")])
    assert mark.score == 1.0
    assert [ask.again for ask in rounds[1]] == [1]
    assert rounds[1][0].messages == rounds[0][1].messages


def test_panel_compares_in_both_orders_each():
    judge = Pairwise(models=["a", "b", "c"], combine="majority")
    replies = [won("A"), won("A"), won("A"), won("B"), won("B"), won("A")]
    mark, rounds = play(judge.script(SAMPLE, OUTPUT), replies)
    assert [ask.role for ask in rounds[0]] == ["a", "b", "c", "a", "b", "c"]
    assert [vote["label"] for vote in mark.details["votes"]] == ["win/win", "win/win", "win/loss"]
    assert (mark.score, mark.details["consistent"], mark.details["favoured"]) == (1.0, False, "first")
    assert mark.details["agreement"] == pytest.approx(2 / 3)


def test_member_without_an_answer_in_one_order_is_left_out():
    judge = Pairwise(models=["a", "b", "c"], quorum=2)
    silent = NoAnswer(cause="rate_limited", message="Later.")
    mark, _ = play(judge.script(SAMPLE, OUTPUT), [won("A"), won("A"), won("B"), won("B"), silent, won("A")])
    assert mark.score == 0.5
    assert mark.details["members"] == 2
    assert mark.details["votes"][1]["cause"] == "rate_limited"


def test_learned_weights_update_preference():
    judge = Pairwise(models=["a", "b", "c"], combine="dawid-skene")
    up, down = (won("A"), won("B")), (won("B"), won("A"))

    def mark(*votes):
        ahead, behind = zip(*votes, strict=True)
        return play(judge.script(SAMPLE, OUTPUT), [*ahead, *behind])[0]

    marks = [mark(up, up, down), mark(down, down, up), mark(up, up, up), mark(down, down, down)] * 6
    settled = judge.settle(marks)
    assert [each.score for each in settled[:4]] == pytest.approx([1, 0, 1, 0], abs=1e-6)
    assert [each.details["preference"] for each in settled[:4]] == ["output", "other", "output", "other"]
    assert "judge_score" not in settled[0].details


def test_criteria_say_what_better_means():
    (ask, _) = next(Pairwise(criteria="it is shorter.").script(SAMPLE, OUTPUT))
    assert ask.messages[1].content.endswith("Better means: it is shorter.")
    for criteria in ("", " ", 7):
        with pytest.raises(ConfigurationError, match="`criteria` of pairwise is text"):
            Pairwise(criteria=criteria)
    with pytest.raises(ConfigurationError, match="`criteria` of pairwise is not valid Unicode at character 1"):
        Pairwise(criteria="a\ud800")
    with pytest.raises(ConfigurationError, match="Did you mean `baseline`"):
        Pairwise(against="basline")


def test_it_round_trips_through_its_spec():
    judge = Pairwise(against="expected", criteria="it is shorter.", models=["a", "b"], threshold=1.0)
    name, options = parse_spec(str(judge))
    assert (name, Pairwise(**options)) == ("pairwise", judge)
