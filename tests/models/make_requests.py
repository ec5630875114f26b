"""Questions and models that the tests share."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from deemster.models import CallContext, Gateway, Role
from deemster.models.model_client import ModelFailure
from deemster.records import Answer, Ask, Embed, Message, Usage
from tests.models.fake_clock import VirtualClock


def question(text: str = "Is it right?", **changes) -> Ask:
    return Ask(messages=(Message("user", text),), **changes)


class Remote:
    """A chat model far away: takes a second for an answer, or plays troubles first."""

    identity = {"base_url": "https://models.example/v1", "model": "far-1"}  # noqa: RUF012 - read, never changed

    def __init__(self, *troubles, takes_s: float = 1.0, usage: Usage | None = None) -> None:
        self.troubles = list(troubles)
        self.takes_s = takes_s
        self.usage = usage or Usage(prompt_tokens=10, completion_tokens=5)
        self.sent: list[float] = []
        self.busy = self.busiest = 0

    async def complete(self, ask: Ask) -> Answer:
        self.sent.append(asyncio.get_running_loop().time())
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.busy -= 1
        if self.troubles and (failure := self.troubles.pop(0)) is not None:
            raise failure
        return Answer(text=f"re: {ask.messages[-1].content}", usage=self.usage, model="far-1-2026")


@asynccontextmanager
async def gateway(client, *, role: str = "judge", kind: str = "chat", settings=None, **options):
    made = Role(client=client, kind=kind, **(settings or {}))
    async with Gateway({role: made}, CallContext(VirtualClock(), **options)) as opened:
        yield opened


async def embedded(client, *rounds, **options):
    """The vectors of texts that are asked for at once, or why there are none; and the gateway that asked."""
    async with gateway(client, role="embedding", kind="embedding", **options) as opened:
        replies = await asyncio.gather(*(opened.answers([Embed(texts=texts)]) for texts in rounds))
        return [reply for (reply,) in replies], opened


def asked_in_turn(client, *asks):
    """What comes of each question, one after the other: an answer or the failure it ran into."""

    async def every():
        results = []
        for ask in asks:
            try:
                results.append(await client.complete(ask))
            except ModelFailure as failure:
                results.append(failure)
        await client.close()
        return results

    return asyncio.run(every())
