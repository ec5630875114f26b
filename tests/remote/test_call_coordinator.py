from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import deemster as dm
from deemster.models.budget import UsageBound
from deemster.models.clock import EPOCH_VARIABLE
from deemster.models.shared_calls import Claim
from deemster.remote.call_coordinator import CallCoordinator, CoordinatorSettings, RoleLimits
from deemster.testing import ModelServer
from deemster.testing.server_replies import verdict
from tests.builders.arguments import arguments
from tests.remote.conftest import Meeting, TwoNodes

pytestmark = pytest.mark.xdist_group("cluster")
COUNT = 60
PRICE = {"input": 1, "output": 2}


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EPOCH_VARIABLE, "1767225600")


def samples(count: int = COUNT) -> list[dict[str, Any]]:
    """Samples of which every two are alike but for their ids, so that their judge is asked the same."""
    return [
        {"id": f"s{number}", "input": {"q": f"Question {number // 2}?"}, "expected_output": f"Answer {number // 2}."}
        for number in range(count)
    ]


def evaluated(server: ModelServer, count: int = COUNT, **settings: Any) -> dm.Report:
    judge = {"base_url": server.url, "model": "m", "price": PRICE, **settings.pop("judge", {})}
    settings.setdefault("target", lambda input: f"I say: {input['q']}")  # noqa: A006 - as targets call it
    return dm.evaluate(
        samples(count),
        metrics=["llm-as-judge", "rouge-l"],
        models={"judge": judge},
        **arguments(max_unscored="100%", **settings),
    )


def total_cost(report: dm.Report) -> Decimal:
    return Decimal(str(report.cost.total_usd))


def kill_at(server: ModelServer, count: int, kill: Callable[[], None]) -> list[int]:
    """Kill something when the server has got so many requests; what it had got then."""
    killed: list[int] = []

    def answer(messages: Any) -> Any:
        if not killed and len(server.requests) >= count:
            killed.append(len(server.requests))
            kill()
        return verdict(messages, seed=server.seed)

    server.answer = answer
    return killed


def test_node_killed_while_judges_are_asked_gives_the_report_of_a_local_run(nodes: TwoNodes, tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, nodes, stay=False)

    def target(input: dict[str, Any]) -> str:  # noqa: A002 - as targets are called
        meeting.attend()
        return f"I say: {input['q']}"

    with ModelServer(faults={"slow=0.1": 1.0}) as server:
        local = evaluated(server, target=target)
        asked = len(server.requests)
        # What samples of both workers ask alike is asked once.
        assert asked == COUNT // 2
        server.forget()
        killed = kill_at(server, 12, nodes.kill_second_node)
        with warnings.catch_warnings():
            # Whether a part was lost depends on the moment.
            warnings.filterwarnings("ignore", message=".*died")
            given = {"target": target, "on": nodes.address, "where": tmp_path / "runs.db"}
            report = evaluated(server, judge={"concurrency": 4}, **given)
        assert killed
        assert report.to_json() == local.to_json()
        # Only what was under way is asked again.
        assert asked <= len(server.requests) <= asked + 4


def test_rate_limit_holds_for_all_workers(nodes: TwoNodes) -> None:
    with ModelServer() as server:
        arrived: list[float] = []

        def answer(messages: Any) -> Any:
            arrived.append(time.monotonic())
            return verdict(messages, seed=server.seed)

        server.answer = answer
        evaluated(server, on=nodes.address, judge={"rpm": 20 * 60})
    assert len(arrived) == COUNT // 2
    # A tenth of a second's worth may pass at once.
    assert arrived[-1] - arrived[0] >= (COUNT // 2 - 3) / 20


def test_budget_holds_for_all_workers_to_the_cent(nodes: TwoNodes, tmp_path: Path) -> None:
    with ModelServer() as server:
        whole = evaluated(server)
        cost = total_cost(whole)
        limit = cost / 2
        report = evaluated(server, on=nodes.address, budget_usd=limit, where=tmp_path / "runs.db")
        server.forget()
        assert report.run.status == "incomplete"
        assert report.budget is not None
        assert report.budget.halted
        assert Decimal(0) < report.budget.spent_usd <= limit
        assert report.budget.estimated_usd == 0
        # A resumed run pays for the rest, and the whole costs what it costs on one machine.
        resumed = evaluated(server, on=nodes.address, where=tmp_path / "runs.db", resume=True)
    assert total_cost(resumed) == cost


def test_killed_driver_is_resumed_on_the_cluster_with_nothing_lost(nodes: TwoNodes, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def answer(input):\n    return 'I say: ' + input['q']\n")
    dm.Dataset(samples(), name="golden").save(tmp_path / "golden.jsonl")
    with ModelServer(faults={"slow=0.1": 1.0}) as server:
        suite = tmp_path / "suite.yml"
        suite.write_text(
            f"schema_version: deemster.suite.v1\non: '{nodes.address}'\n"
            "name: s\ndataset: golden.jsonl\ntarget: {python: 'app:answer'}\n"
            f"metrics: [llm-as-judge]\nmodels: {{judge: {{base_url: '{server.url}', model: m, concurrency: 4}}}}\n"
        )
        command = [
            sys.executable,
            "-m",
            "deemster",
            "run",
            str(suite),
            "--quiet",
            "--cache",
            "none",
        ]
        command += ["--store", str(tmp_path / "runs.db"), "--to", str(tmp_path / "cluster.json")]
        driver = subprocess.Popen(command, start_new_session=True)
        killed = kill_at(server, 20, lambda: os.kill(driver.pid, signal.SIGKILL))
        assert driver.wait() == -signal.SIGKILL
        assert killed
        assert subprocess.run([*command, "--resume"], check=False).returncode == 0
        # What was stored is not asked again: only what was under way, or answered in the last moments, is.
        assert COUNT // 2 <= len(server.requests) < COUNT // 2 + killed[0]
        server.forget()
        local = [*command[:8], "--store", "none", "--to", str(tmp_path / "local.json")]
        assert subprocess.run(local, check=False).returncode == 0
    assert (tmp_path / "cluster.json").read_bytes() == (tmp_path / "local.json").read_bytes()


def test_dead_worker_gives_back_its_places_and_its_calls_under_way_count_at_the_most() -> None:
    async def play() -> tuple[UsageBound, int, Claim]:
        coordinator = CallCoordinator(CoordinatorSettings({"judge": RoleLimits(2, 2)}, usd=Decimal(100)))
        await coordinator.begin("dead")
        for usd in (1, 2, 3):
            await coordinator.reserve("dead", UsageBound(10, Decimal(usd)))
        assert (await coordinator.claim("dead", b"question")).answer is None
        await coordinator.enter("dead", "judge", 0.0, True)
        await coordinator.enter("dead", "judge", 0.0, True)
        await coordinator.begin("alive")
        waiting = asyncio.create_task(coordinator.claim("alive", b"question"))
        await coordinator.drop("dead", True)
        # Without the places of the dead worker this would wait for ever.
        await coordinator.enter("alive", "judge", 0.0, True)
        state = await coordinator.state()
        return state.spent, state.limits["judge"].under_way, await waiting

    spent, under_way, claim = asyncio.run(play())
    assert spent == UsageBound(20, Decimal(5))
    assert under_way == 1
    assert claim == Claim()
