"""Hand-made scorers, and models that answer them without a gateway."""

from __future__ import annotations

import asyncio

import deemster as dm
from deemster.records import Answer, Ask, Message, MetricScore, NoAnswer, Usage

SAMPLE = dm.Sample("s", {"n": 1}, "yes")
OUTPUT = dm.Output("yes")
DOWN = NoAnswer(cause="model_failed", message="The server answered 500.", usage=Usage(prompt_tokens=1))


def question(text, **options):
    return Ask(messages=(Message("user", text),), **options)


def answer(text="0.5", tokens=10):
    return Answer(text=text, usage=Usage(prompt_tokens=tokens, completion_tokens=1))


class Scripted:
    """A user's scorer whose script is the function it is given."""

    def __init__(self, script, name="scripted"):
        self.name = name
        self.script = script


class Together(Scripted):
    """A scorer that marks a batch with one script."""

    def __init__(self, script_many, name="together"):
        super().__init__(rated, name)
        self.script_many = script_many


def rated(sample, output):
    """Ask once about one output, and take the answer for the score."""
    (reply,) = yield [question(f"{sample.id}: {output.text}")]
    if isinstance(reply, NoAnswer):
        return dm.Unscored(reply.cause, reply.message)
    return MetricScore(float(reply.text), {"said": reply.text})


def rated_together(samples, outputs):
    """The same for a batch, in one round."""
    replies = yield [question(f"{sample.id}: {output.text}") for sample, output in zip(samples, outputs, strict=True)]
    return [MetricScore(float(reply.text)) for reply in replies]


class Model:
    """Answers rounds of requests by a function, and records them.

    Args:
        reply: From a request to its reply.
        wait: Awaited before each round is answered.
    """

    def __init__(self, reply=lambda _: answer(), wait=None):
        self.reply, self.wait = reply, wait
        self.rounds = []
        self.inside = self.most = 0

    async def __call__(self, requests):
        self.rounds.append(list(requests))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            if self.wait is not None:
                await self.wait(requests)
            else:
                await asyncio.sleep(0)
            return [self.reply(request) for request in requests]
        finally:
            self.inside -= 1

    @property
    def asked(self):
        """Every text it was asked about, in order."""
        return [
            each.messages[-1].content if isinstance(each, Ask) else each.texts
            for requests in self.rounds
            for each in requests
        ]
