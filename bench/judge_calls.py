"""Judge calls at concurrency 64 against a local server in a separate process, in calls per CPU second of the client.

In wall time, client and server work at the same time, each on a core, and the slower one decides.

The bare aiohttp client posts prepared bodies and reads replies without parsing them. The gateway answers prepared
questions, with an empty cache on disk, limits, retries, usage and prices. The judge is the complete path: script and
prompt, gateway, strict parsing of the verdict, and the mark. The peers post the same prompts with their own
client and read the score. Imports and connections are left out, a small run comes first, all take turns, and the best
of three counts. All must read the same scores. A peer whose environment is not installed is left out.

Usage: .venv/bin/python bench/judge_calls.py [calls] [calls of a peer]
"""

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import aiohttp
from environments import exists, python, version
from measured_rows import OURS, other_tool, record_row

import deemster as dm
from deemster.engine.play_scripts import play_script
from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.models import CallContext
from deemster.models.answer_cache import Cache
from deemster.models.gateway import Gateway
from deemster.models.model_roles import Role
from deemster.models.openai_client import OpenAIChat
from deemster.models.price import Price
from deemster.records import Output, Sample

HERE = Path(__file__).parent
CONCURRENCY = 64
WORK = f"judge calls, {CONCURRENCY} at a time"
REPEATS = 3
WARMING = 100
MODEL = "bench-model"
BARE = "bare aiohttp"
# Of the rate of the bare client, and as a multiple of the peers' rates.
LEAST_SHARE = 0.4
GOALS = {"openai": 5, "litellm": 10}


class Spent(NamedTuple):
    """CPU seconds, and wall seconds where they were measured."""

    cpu: float
    clock: float = 0.0


def cases(count):
    return [
        (
            Sample(
                id=f"s{number:05d}",
                input={"question": f"How long do I have to return item {number}?"},
                expected_output=f"{number % 60} days after delivery",
            ),
            Output(f"You can send it back within {number % 60} days of getting it."),
        )
        for number in range(count)
    ]


def asks(given):
    """The first question of the judge about each case."""
    return [next(LlmAsJudge().script(*case))[0] for case in given]


async def worked(function, items):
    """Apply a function to every item, 64 at a time."""
    rest = iter(enumerate(items))
    results = [None] * len(items)

    async def worker():
        for place, item in rest:
            results[place] = await function(item)

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    return results


async def timed(function, items):
    """The time, and the results."""
    await worked(function, items[:WARMING])
    start, began = time.process_time(), time.perf_counter()
    results = await worked(function, items[WARMING:])
    return Spent(time.process_time() - start, time.perf_counter() - began), results


async def bare(url, bodies):
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers={"Content-Type": "application/json"}) as session:

        async def post(body):
            async with session.post(f"{url}/chat/completions", data=body) as response:
                return await response.read()

        seconds, replies = await timed(post, bodies)
    return seconds, [json.loads(json.loads(reply)["choices"][0]["message"]["content"])["score"] for reply in replies]


async def ours(url, items, folder, function):
    """Apply a function of the gateway to every item."""
    cache = Cache(folder / "cache.jsonl")
    prices = {"bench": Price(Decimal("0.15"), Decimal("0.60"))}
    client = OpenAIChat(url, MODEL, api_key="sk-bench-0123456789")
    role = Role(client=client, concurrency=CONCURRENCY, prices=prices)
    try:
        async with Gateway({"judge": role}, CallContext(cache=cache)) as gateway:
            seconds, results = await timed(function(gateway), items)
            if gateway.spent["judge"].calls != len(items):
                sys.exit(f"the gateway counted {gateway.spent['judge'].calls} calls, not {len(items)}")
    finally:
        cache.close()
        cache.path.unlink()
    return seconds, results


async def asked(url, questions, folder):
    def function(gateway):
        async def answer(ask):
            return (await gateway.answers([ask]))[0]

        return answer

    seconds, answers = await ours(url, questions, folder, function)
    return seconds, [json.loads(answer.text)["score"] for answer in answers]


async def judged(url, given, folder):
    judge = LlmAsJudge()

    def function(gateway):
        async def mark(case):
            return await play_script(judge, *case, ask=gateway.answers)

        return mark

    seconds, marks = await ours(url, given, folder, function)
    return seconds, [mark.score for mark in marks]


def peer(name, url, folder):
    """The CPU seconds that a peer reports, and the scores it read."""
    script = HERE / "peers" / f"judge_calls_{name}.py"
    told = subprocess.run(
        [python(name), script, url, folder / "bodies.json"], check=True, capture_output=True, text=True
    )
    answer = json.loads(told.stdout.splitlines()[-1])
    return Spent(answer["seconds"]), answer["scores"]


def line(name, count, seconds, note=""):
    rate, each = count / seconds, seconds / count * 1e6
    print(
        f"{name:<18} {count:>7,} calls {seconds:>8.2f} CPU s {rate:>8,.0f} per CPU s {each:>7,.0f} µs{note}", flush=True
    )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    count_of_peer = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    given = cases(count + WARMING)
    questions = asks(given)
    client = OpenAIChat("http://127.0.0.1", MODEL)
    bodies = [json.dumps(client.request(ask)).encode() for ask in questions]
    command = [sys.executable, "-m", "deemster.testing.model_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            with tempfile.TemporaryDirectory(prefix="deemster-bench-") as name:
                compare(url, given, questions, bodies, count_of_peer + WARMING, Path(name))
        finally:
            server.terminate()


def compare(url, given, questions, bodies, few, folder):
    (folder / "bodies.json").write_bytes(b"[" + b",".join(bodies[:few]) + b"]")
    # What the benchmark itself holds is not to be walked over by the collector, on either side.
    gc.collect()
    gc.freeze()
    best = {}
    for _ in range(REPEATS):
        turns = {
            BARE: asyncio.run(bare(url, bodies)),
            "gateway": asyncio.run(asked(url, questions, folder)),
            "judge": asyncio.run(judged(url, given, folder)),
        }
        for name in GOALS:
            if exists(name):
                with other_tool(WORK, name, "µs a call"):
                    turns[name] = peer(name, url, folder)
        for name, (spent, scores) in turns.items():
            if scores != turns[BARE][1][: len(scores)]:
                sys.exit(f"{name} read other scores than the bare client")
            known = best.get(name, (*spent, 0))
            best[name] = (min(known[0], spent.cpu), min(known[1], spent.clock), len(scores))
    rates = {name: count / seconds for name, (seconds, _, count) in best.items()}
    for name, (seconds, clock, count) in best.items():
        note = ""
        if name in ("gateway", "judge"):
            by_clock = best[BARE][1] / clock
            note = f"  {rates[name] / rates[BARE]:.2f} of the bare client's rate, {by_clock:.2f} by the clock"
            note += f" (goal {LEAST_SHARE})"
        elif name in GOALS:
            note = f"  the judge is {rates['judge'] / rates[name]:.1f} times faster (goal {GOALS[name]})"
        line(f"{name} {version(name)}" if name in GOALS else name, count, seconds, note)
    hand_over({name: (seconds, count) for name, (seconds, _, count) in best.items()})


def hand_over(best):
    """The judge beside the other clients."""
    tools = {"judge": (OURS, dm.__version__, None), BARE: (BARE, aiohttp.__version__, LEAST_SHARE)}
    tools |= {name: (name, version(name), goal) for name, goal in GOALS.items() if name in best}
    for name, (tool, release, goal) in tools.items():
        seconds, count = best[name]
        more = {"version": release, "samples": count, "cpu_s": seconds, "goal": goal}
        record_row(WORK, tool, seconds / count * 1e6, "µs a call", **more)


if __name__ == "__main__":
    main()
