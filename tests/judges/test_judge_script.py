"""What every judge does with replies: reads, asks once more, gives up."""

import pytest

from deemster.judges.judge_script import (
    NoAnswerError,
    ParsedReply,
    ask_all,
    ask_model,
    ask_with_retry,
    unreadable_reply,
)
from deemster.judges.reply_parser import UnreadableReplyError
from deemster.records import Ask, Message, NoAnswer, Vectors
from tests.judges.play import DOWN, play, said, used

ASKS = [Ask(messages=(Message("user", text),)) for text in "abc"]


def number(answer):
    try:
        return int(answer.text)
    except ValueError:
        raise UnreadableReplyError(f"`{answer.text}` is no number.") from None


def test_readable_reply_is_requested_once():
    found, rounds = play(ask_model(ASKS[0], number), [said("7", usage=used(3))])
    assert (found.value, found.answer.text) == (7, "7")
    assert rounds == [[ASKS[0]]]


def test_unreadable_reply_is_requested_once_more():
    found, rounds = play(ask_model(ASKS[0], number), [said("?", usage=used(3))], [said("7", usage=used(4))])
    assert found.value == 7
    assert [[ask.again for ask in asks] for asks in rounds] == [[0], [1]]
    assert rounds[1][0].messages == ASKS[0].messages


def test_both_replies_of_retried_question_are_charged():
    script = ask_with_retry(ASKS[:1], lambda _, answer: [number(answer)])
    (outcome,), _ = play(script, [said("?", usage=used(3))], [said("7", usage=used(4))])
    assert outcome.parts == [7]
    assert [call.usage.prompt_tokens for call in outcome.calls] == [3, 4]


def test_readable_part_of_first_reply_is_kept():
    def read(_, answer):
        return [int(word) if word.isdigit() else unreadable_reply(word) for word in answer.text.split()]

    (outcome,), _ = play(ask_with_retry(ASKS[:1], read, parts=[3]), [said("1 ? ?")], [said("9 2 !")])
    assert outcome.parts[:2] == [1, 2]
    assert outcome.parts[2].message == "!"


def test_two_unreadable_replies_are_no_answer():
    with pytest.raises(NoAnswerError) as caught:
        play(ask_model(ASKS[0], number), [said("?", usage=used(3))], [said("!", usage=used(4))])
    assert (caught.value.cause, caught.value.message) == ("unreadable", "`!` is no number.")


@pytest.mark.parametrize("cause", ["model_failed", "rate_limited", "not_run", "unreadable"])
def test_model_that_failed_is_not_asked_again(cause):
    with pytest.raises(NoAnswerError) as caught:
        play(ask_model(ASKS[0], number), [NoAnswer(cause=cause, message="No.")])
    assert (caught.value.cause, caught.value.message) == (cause, "No.")


def test_only_unreadable_replies_are_retried():
    told, rounds = play(ask_all(ASKS, number), [said("1"), said("?"), DOWN], [said("2")])
    assert [each.value if isinstance(each, ParsedReply) else each.cause for each in told] == [1, 2, "model_failed"]
    assert [ask.messages[0].content for ask in rounds[1]] == ["b"]


def test_failure_after_an_unreadable_reply_keeps_its_own_cause():
    script = ask_with_retry(ASKS[:1], lambda _, answer: [number(answer)])
    (outcome,), _ = play(script, [said("?", usage=used(2))], [DOWN])
    assert outcome.parts[0].cause == "model_failed"
    assert [call.usage.prompt_tokens for call in outcome.calls] == [2]


def test_vectors_are_not_a_chat_answer():
    (told,), _ = play(ask_all(ASKS[:1], number), [Vectors(values=[])], [Vectors(values=[])])
    assert told.cause == "unreadable"
