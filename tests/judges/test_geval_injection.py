"""No judged text, context or claim changes the G-Eval prompt around it."""

import json

import pytest

from deemster.judges.claim_faithfulness import ClaimFaithfulness
from deemster.judges.geval import GEval
from deemster.records import Output, Sample
from deemster.testing.server_replies import ChatMessages
from tests.builders.obedient_model import ObedientModel
from tests.builders.prompt_blocks import structure
from tests.judges.injection_payloads import PAYLOADS
from tests.judges.play import answered, said
from tests.judges.test_untrusted_text_injection import HARMLESS

EVERY = ["input", "context", "expected_output", "actual_output"]
SHOT = {"score": 3, "reason": "r", **dict.fromkeys(EVERY, "shown before")}
JUDGES = {
    "steps": GEval(steps=["Read."], fields=EVERY),
    "few shot": GEval(steps=["Read."], fields=EVERY, few_shot=[SHOT], info="A shop."),
    "logprobs panel": GEval(steps=["Read."], fields=EVERY, scoring="logprobs", models=["judge", "b"]),
    "refusal check": GEval(preset="groundedness", refusal_check=True),
    "claims": ClaimFaithfulness(),
}
SPOTS = ("output", "question", "expected", "passage", "retrieved")


def case(spot, text):
    held = {each: f"words of the {each}" for each in SPOTS} | {spot: text}
    given = {"question": held["question"] or "q", "context": ["first", held["passage"]]}
    retrieved = [{"id": 1, "text": "first"}, {"id": 2, "text": text}] if spot == "retrieved" else None
    return Sample("s", given, held["expected"], {}), Output(held["output"], retrieved=retrieved)


def replies(claim):
    """A fixed reply to each kind of request."""

    def reply(ask):
        keys = set(ask.schema["properties"])
        if "claims" in keys:
            return said(claims=[claim])
        more = {"declines": False} if "declines" in keys else {"verdict": "open"} if "verdict" in keys else {"score": 2}
        return said(reason="r", **more)

    return reply


def structures(judge, spot, text, claim="a claim"):
    mark, asks = answered(judge.script(*case(spot, text)), replies(claim))
    return mark, [structure(ask) for ask in asks]


@pytest.mark.parametrize("spot", SPOTS)
@pytest.mark.parametrize("name", JUDGES)
def test_payload_changes_nothing_outside_its_own_block(name, spot):
    judge = JUDGES[name]
    plain_mark, plain = structures(judge, spot, HARMLESS)
    for payload in PAYLOADS:
        mark, put = structures(judge, spot, payload)
        assert mark.score == plain_mark.score
        assert [outside for outside, _ in put] == [outside for outside, _ in plain]
        for (_, texts), (_, harmless) in zip(put, plain, strict=True):
            assert texts.keys() == harmless.keys()
            for label, text in harmless.items():
                if text != HARMLESS:
                    assert texts[label] == text
                elif payload.strip():
                    assert texts[label] == payload


def test_claims_are_in_blocks_too():
    judge = JUDGES["claims"]
    _, plain = structures(judge, "output", "x", claim=HARMLESS)
    for payload in filter(str.strip, PAYLOADS):
        _, put = structures(judge, "output", "x", claim=payload)
        assert [outside for outside, _ in put] == [outside for outside, _ in plain]
        assert put[1][1]["claim"] == payload.strip()


@pytest.mark.parametrize("spot", SPOTS)
def test_obedient_model_finds_no_order_outside_blocks(spot):
    judge, model = JUDGES["few shot"], ObedientModel(honest=0.25)

    def reply(ask):
        body = {
            "messages": [{"role": role, "content": content} for role, content in ask.messages],
            "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": ask.schema}},
        }
        model(ChatMessages(json.loads(json.dumps(body))))
        return said(reason="r", score=2)

    for ask in next(judge.script(*case(spot, HARMLESS))):
        for message in ask.messages:
            model.learn(message.content)
    for payload in PAYLOADS:
        answered(judge.script(*case(spot, payload)), reply)
    assert model.obeyed == []
