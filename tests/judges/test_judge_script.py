"""What every judge does with replies: reads, asks once more, gives up."""

import pytest

from deemster.judges.judge_script import Silent, Told, asked, asked_all
from deemster.judges.reply_parser import Unreadable
from deemster.records import Ask, Message, NoAnswer, Vectors
from tests.judges.play import DOWN, play, said, used

ASKS = [Ask(messages=(Message("user", text),)) for text in "abc"]


def number(answer):
    try:
        return int(answer.text)
    except ValueError:
        raise Unreadable(f"`{answer.text}` is no number.") from None


def test_a_readable_reply_is_asked_for_once():
    told, rounds = play(asked(ASKS[0], number), [said("7", usage=used(3))])
    assert (told.value, told.answer.text, told.usage.prompt_tokens) == (7, "7", 3)
    assert rounds == [[ASKS[0]]]


def test_an_unreadable_reply_is_asked_for_once_more_and_both_are_paid():
    told, rounds = play(asked(ASKS[0], number), [said("?", usage=used(3))], [said("7", usage=used(4))])
    assert (told.value, told.usage.prompt_tokens, told.usage.calls) == (7, 7, 2)
    assert [[ask.again for ask in asks] for asks in rounds] == [[0], [1]]
    assert rounds[1][0].messages == ASKS[0].messages


def test_two_unreadable_replies_are_a_silence():
    with pytest.raises(Silent) as caught:
        play(asked(ASKS[0], number), [said("?", usage=used(3))], [said("!", usage=used(4))])
    no_answer = caught.value.no_answer
    assert (no_answer.cause, no_answer.message, no_answer.usage.calls) == ("unreadable", "`!` is no number.", 2)


@pytest.mark.parametrize("cause", ["model_failed", "rate_limited", "not_run", "unreadable"])
def test_a_silence_is_not_asked_again(cause):
    with pytest.raises(Silent) as caught:
        play(asked(ASKS[0], number), [NoAnswer(cause=cause, message="No.")])
    assert (caught.value.no_answer.cause, caught.value.no_answer.message) == (cause, "No.")


def test_of_several_only_the_unreadable_ones_are_asked_again():
    told, rounds = play(asked_all(ASKS, number), [said("1"), said("?"), DOWN], [said("2")])
    assert [each.value if isinstance(each, Told) else each.cause for each in told] == [1, 2, "model_failed"]
    assert [ask.messages[0].content for ask in rounds[1]] == ["b"]


def test_a_silence_after_an_unreadable_reply_keeps_its_own_cause():
    (told,), _ = play(asked_all(ASKS[:1], number), [said("?", usage=used(2))], [DOWN])
    assert (told.cause, told.usage.prompt_tokens) == ("model_failed", 2)


def test_vectors_are_no_answer():
    (told,), _ = play(asked_all(ASKS[:1], number), [Vectors(values=[])], [Vectors(values=[])])
    assert told.cause == "unreadable"
