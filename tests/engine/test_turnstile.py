"""Runs side by side begin their samples in turn."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from deemster.engine.turnstile import NO_TURNS, Turnstile
from deemster.engine.work_items import WorkItem
from deemster.records import Sample

SAMPLES = [Sample(id=f"q{position}", input={}) for position in range(40)]


def works(*positions, repetition=0):
    return [WorkItem(position, SAMPLES[position], repetition) for position in positions]


async def play(turnstile, runs, *, workers=1):
    """Who began which sample, in order; each run with so many workers, some slower than others."""
    begun = []

    async def work(run, left, turns):
        for item in left:
            if not await turns.wait(item):
                return
            begun.append((item.repetition, item.position, run))
            for _ in range((run * 7 + item.position) % 5):
                await asyncio.sleep(0)

    async def one(run, items):
        turns = turnstile.turns_of(run)
        left = iter(items)
        await asyncio.gather(*(work(run, left, turns) for _ in range(workers)))
        turns.leave()

    await asyncio.wait_for(asyncio.gather(*(one(run, items) for run, items in enumerate(runs))), 10)
    return begun


@pytest.mark.parametrize("workers", [1, 4])
async def test_all_runs_begin_a_sample_before_any_begins_the_next(workers):
    begun = await play(Turnstile(3, seed=1), [works(*range(40))] * 3, workers=workers)
    assert [sample[:2] for sample in begun] == [(0, position) for position in range(40) for _ in range(3)]


async def test_order_within_a_sample_is_drawn_by_the_seed():
    first, again, other = [
        [run for _, _, run in await play(Turnstile(3, seed=seed), [works(*range(40))] * 3)] for seed in (1, 1, 2)
    ]
    assert first == again
    assert first != other
    leaders = Counter(first[::3])
    assert set(leaders) == {0, 1, 2}
    assert min(leaders.values()) >= 5


async def test_run_that_lacks_samples_holds_up_none_of_the_others():
    runs = [works(*range(10)), works(3, 7), []]
    begun = await play(Turnstile(3, seed=1), runs)
    assert sorted(begun) == sorted((0, item.position, run) for run, items in enumerate(runs) for item in items)
    assert [position for _, position, _ in begun] == sorted(position for _, position, _ in begun)


async def test_run_that_leaves_gets_no_turn_and_lets_the_others_go_on():
    turnstile = Turnstile(2, seed=1)
    first = asyncio.create_task(turnstile.turns_of(0).wait(*works(0)))
    await asyncio.sleep(0)
    assert not first.done()
    turnstile.turns_of(1).leave()
    assert await first
    turnstile.turns_of(0).leave()
    assert not await turnstile.turns_of(0).wait(*works(1))


async def test_what_waits_is_not_done_where_its_run_leaves():
    turnstile = Turnstile(2, seed=1)
    waiting = asyncio.create_task(turnstile.turns_of(0).wait(*works(0)))
    await asyncio.sleep(0)
    turnstile.turns_of(0).leave()
    assert not await waiting


async def test_first_turn_is_told_once():
    told = []
    await play(Turnstile(2, seed=1, opened=lambda: told.append("open")), [works(0, 1)] * 2)
    assert told == ["open"]


async def test_run_by_itself_waits_for_nobody():
    assert await NO_TURNS.wait(*works(0))
