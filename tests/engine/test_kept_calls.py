"""What models answered survives a stop: a resumed run asks nobody twice, forgets no spending, and reports the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster import records
from deemster.engine.model_access import build_model_access
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.evaluation.rescore_run import rescore
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.grading.grade_dataset import run_grading
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.judge_panel import Judge
from deemster.judges.metric_catalog import resolve_all
from deemster.models import ModelFailure, Price, Role
from deemster.records import Answer, Usage
from deemster.runs.run_storage import NOT_STORED, RunStorage
from deemster.store import open_store
from deemster.store.find_damage import find_damage
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK

ROLES = ("judge:a", "judge:b", "judge:c")
COUNT = 12
USED = Usage(prompt_tokens=100, completion_tokens=10)
SAMPLES = [dm.Sample(f"s{n}", {"question": f"Question {n}?"}, f"answer {n}") for n in range(COUNT)]
OUTPUTS = {sample.id: f"output of {sample.id}" for sample in SAMPLES}
PANEL = {"llm-as-judge": {"models": list(ROLES), "combine": "median"}}


class Client(NamedTuple):
    """One of the judges, as a model role asks it."""

    judges: Any
    model: str

    @property
    def identity(self):
        return {"model": self.model}

    async def complete(self, ask):
        return await self.judges.reply(self.model, ask)


class Judges:
    """Three judges that differ, and count what they are asked.

    Args:
        stop: Asked for when so many requests have come.
        after: How many.
        usage: What each answer reports.
        verdict: Whether they give verdicts on criteria.
        slow_s: How much longer each answer takes.
    """

    def __init__(self, stop=None, after=0, usage=USED, *, verdict=False, slow_s=0.0):
        self.stop, self.after, self.usage, self.verdict, self.slow_s = stop, after, usage, verdict, slow_s
        self.asked = []

    async def reply(self, role, ask):
        self.asked.append((role, ask.messages[-1].content))
        if self.stop is not None and len(self.asked) == self.after:
            self.stop.request("enough")
        # The first judge is far ahead of the last when a run stops.
        await asyncio.sleep(self.slow_s + 0.002 * (1 + ROLES.index(role)))
        number = len(ask.messages[-1].content) * 7 + ROLES.index(role) * 31
        if "steps" in str(ask.schema):
            text = '{"steps": ["Read it.", "Look for rude words."]}'
        elif self.verdict:
            text = f'{{"reason": "so says {role}", "verdict": "{("MET", "UNMET")[number % 2]}"}}'
        else:
            score = number % 11 if "integer" in str(ask.schema) else number % 11 / 10
            text = f'{{"reason": "so says {role}", "score": {score}}}'
        return Answer(text=text, usage=self.usage, model=role)

    def roles(self, concurrency=1, names=ROLES):
        price = {"": Price(2, 8)}
        return {
            name: Role(
                client=Client(self, role),
                prices=price,
                concurrency=concurrency,
            )
            for name, role in zip(names, ROLES, strict=False)
        }


def evaluated(
    judges,
    storage=NOT_STORED,
    *,
    concurrency=1,
    metrics=(PANEL,),
    models=ROLES,
    timeout_s=None,
    outputs=OUTPUTS,
    **limits,
):
    job = resolve_arguments(
        dm.Dataset(SAMPLES, name="d"),
        outputs=outputs,
        metrics=list(metrics),
        models=judges.roles(concurrency, models),
        **arguments(**limits),
    )
    job = job._replace(plan=job.plan._replace(timeout_s=timeout_s))
    return ran_in(storage, job, clock=CLOCK, stop=judges.stop or Stop(), warn=[].append)


def kept(store):
    """The calls that a store keeps of its last run."""
    return list(store.calls(store.run("latest").id))


def test_panel_stopped_between_its_members_is_not_run_and_resumes_to_the_same_bytes(place):
    alone = Judges()
    whole = evaluated(alone)
    assert len(alone.asked) == 3 * COUNT
    with open_store(place) as store:
        first = Judges(Stop(), after=3 * 4 + 2)
        stopped = evaluated(first, RunStorage(store))
        assert stopped.run.status == "incomplete"
        judged = stopped.metrics["llm-as-judge"].n_scored
        assert 0 < 3 * judged < len(first.asked) < 3 * COUNT
        assert stopped.usage.scoring.calls == len(first.asked)
        second = Judges()
        resumed = evaluated(second, RunStorage(store, resume=True))
        assert resumed.to_json() == whole.to_json()
        assert kept(store) == []
    assert sorted(first.asked + second.asked) == sorted(alone.asked)


def test_panel_stopped_by_its_budget_is_not_run_and_resumes_to_the_same_bytes(place):
    whole = evaluated(Judges())
    with open_store(place) as store:
        asked = []
        for tokens in (3_500, 4_800, 6_000):
            judges = Judges()
            report = evaluated(judges, RunStorage(store, resume=bool(asked)), budget_tokens=tokens)
            assert report.run.status == "incomplete"
            assert report.budget.spent_tokens <= tokens
            asked += judges.asked
            assert report.budget.spent_tokens == 110 * len(asked)
            for execution in report.executions:
                mark = execution.marks["llm-as-judge"]
                assert hasattr(mark, "unscored") or len(mark.details["votes"]) == 3
        last = Judges()
        resumed = evaluated(last, RunStorage(store, resume=True))
        assert resumed.to_json() == whole.to_json()
    asked += last.asked
    assert len(asked) == len(set(asked)) == 3 * COUNT


def test_time_limit_between_members_of_a_panel_resumes_to_the_same_bytes(tmp_path):
    whole = evaluated(Judges())
    with open_store(tmp_path / "runs.db") as store:
        asked = []
        # On a busy machine the time may be over before the first question.
        for attempt, timeout_s in enumerate((0.02, 0.03, None)):
            judges = Judges()
            report = evaluated(judges, RunStorage(store, resume=attempt > 0), timeout_s=timeout_s)
            asked += judges.asked
        assert report.to_json() == whole.to_json()
    assert len(asked) == len(set(asked)) == 3 * COUNT


def test_budget_counts_estimates_over_all_resumes_where_no_usage_is_reported(place):
    with open_store(place) as store:
        asked, spent = [], []
        for _ in range(4):
            judges = Judges(usage=None)
            report = evaluated(judges, RunStorage(store, resume=bool(spent)), budget_tokens=20_000)
            asked += judges.asked
            budget = report.budget
            spent.append(budget.spent_tokens)
            assert budget.halted
            assert budget.estimated_tokens == budget.spent_tokens <= 20_000
            assert "by estimate" in budget.reason
        assert spent == spent[:1] * 4
    assert 0 < len(asked) == len(set(asked)) < 3 * COUNT


def test_budget_in_money_counts_estimates_over_all_resumes(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        spent = []
        for _ in range(3):
            judges = Judges(usage=None)
            report = evaluated(judges, RunStorage(store, resume=bool(spent)), budget_usd=0.05)
            spent.append((report.budget.spent_usd, report.budget.estimated_usd))
        assert len(set(spent)) == 1
        assert 0 < spent[0][0] == spent[0][1] <= Decimal("0.05")


def test_run_that_began_without_a_budget_counts_all_calls_when_it_is_resumed_with_one(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        first = Judges(Stop(), after=14, usage=None)
        evaluated(first, RunStorage(store))
        second = Judges(usage=None)
        report = evaluated(second, RunStorage(store, resume=True), budget_tokens=1)
        assert second.asked == []
        assert report.budget.estimated_tokens == report.budget.spent_tokens > 1_000 * len(first.asked)


def test_store_of_the_earlier_schema_resumes_and_counts_what_its_marks_used(tmp_path):
    path = tmp_path / "runs.db"
    whole = evaluated(Judges(), metrics=["llm-as-judge"], models=("judge",))
    with open_store(path) as store:
        first = Judges(Stop(), after=5)
        evaluated(first, RunStorage(store), metrics=["llm-as-judge"], models=("judge",))
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP TABLE calls; DROP TABLE prompts; DROP TABLE baselines; DROP TABLE columns; DROP TABLE labels;"
            "ALTER TABLE runs DROP COLUMN experiment;"
            "CREATE TABLE entries (run BIGINT, position BIGINT, body BLOB, checksum BIGINT); PRAGMA user_version = 1;"
        )
    with open_store(path) as store:
        spent = []
        for tokens in (700, 700, None):
            report = evaluated(
                Judges(),
                RunStorage(store, resume=True),
                metrics=["llm-as-judge"],
                models=("judge",),
                budget_tokens=tokens,
            )
            spent += [] if report.budget is None else [report.budget.spent_tokens]
        assert spent == [110 * len(first.asked)] * 2
        assert report.to_json() == whole.to_json()


@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_run_that_stops_anywhere_asks_nobody_twice_and_reports_the_same(data, tmp_path_factory):
    once = {"g-eval": {"name": "tone", "criteria": "Is it polite?", "models": list(ROLES[:2])}}
    metrics = (PANEL, once)
    whole, alone = STOPPED.setdefault("whole", None), Judges()
    if whole is None:
        whole = STOPPED["whole"] = evaluated(alone, metrics=metrics).to_json()
        STOPPED["asked"] = sorted(alone.asked)
    asked = []
    with open_store(tmp_path_factory.mktemp("stopped") / "runs.db") as store:
        for way in data.draw(st.lists(st.sampled_from(["stop", "budget"]), max_size=4)):
            concurrency = data.draw(st.integers(1, 5))
            stop = Stop() if way == "stop" else None
            limits = {} if stop else {"budget_tokens": 110 * len(asked) + data.draw(st.integers(0, 9_000))}
            judges = Judges(stop, after=data.draw(st.integers(1, 40)))
            evaluated(judges, RunStorage(store, resume=True), metrics=metrics, concurrency=concurrency, **limits)
            asked += judges.asked
        last = Judges()
        report = evaluated(last, RunStorage(store, resume=True), metrics=metrics, concurrency=3)
        assert report.to_json() == whole
    assert sorted(asked + last.asked) == STOPPED["asked"]


STOPPED: dict[str, Any] = {}


def test_grading_stopped_between_judges_resumes_to_the_same_bytes(place):
    items = [{"id": f"i{n}", "submission": f"Text {n}."} for n in range(COUNT)]
    rubric = [{"name": "facts", "requirement": "Is it right?"}, {"name": "style", "requirement": "Is it short?"}]
    data = dm.RubricDataset(items, rubric=rubric, name="essays")
    grader = CriterionGrader(tuple(Judge(role, role) for role in ROLES))

    def graded(judges, storage=NOT_STORED):
        access = build_model_access(judges.roles())
        work = run_grading(data, grader, access=access, warn=[].append, clock=CLOCK, stop=judges.stop, storage=storage)
        return run_sync(work)

    alone = Judges(verdict=True)
    whole = graded(alone)
    with open_store(place) as store:
        first = Judges(Stop(), after=20, verdict=True)
        assert graded(first, RunStorage(store)).halted == "enough"
        second = Judges(verdict=True)
        again = graded(second, RunStorage(store, resume=True))
        assert kept(store) == []
    assert sorted(first.asked + second.asked) == sorted(alone.asked)
    assert [msgspec.to_builtins(item) for item in again.items] == [msgspec.to_builtins(item) for item in whole.items]
    assert again.usage == whole.usage


def test_run_with_a_cache_counts_what_an_earlier_process_spent(tmp_path):
    whole = evaluated(Judges())
    given = {"cache": tmp_path / "answers.jsonl"}
    with open_store(tmp_path / "runs.db") as store:
        first = Judges(Stop(), after=14)
        evaluated(first, RunStorage(store), **given)
        assert [json.loads(body).keys() for _, body in kept(store)] == [{"id", "key", "counted"}] * len(first.asked)
        second = Judges()
        halted = evaluated(second, RunStorage(store, resume=True), budget_tokens=1_000, **given)
        assert (second.asked, halted.budget.spent_tokens) == ([], 110 * len(first.asked))
        last = Judges()
        assert evaluated(last, RunStorage(store, resume=True), **given).to_json() == whole.to_json()
    assert len(first.asked + last.asked) == 3 * COUNT


def test_run_that_is_cancelled_counts_requests_under_way_as_estimates(tmp_path, monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)
    with open_store(tmp_path / "runs.db") as store:
        first = Judges(Stop(), after=5, slow_s=5)
        evaluated(first, RunStorage(store), concurrency=2)
        calls = [json.loads(body) for _, body in kept(store)]
        assert len(calls) == len(first.asked) == 6
        assert all(call["counted"][0] == call["counted"][2] > 1_000 for call in calls)
        report = evaluated(Judges(), RunStorage(store, resume=True), budget_tokens=1)
        assert report.budget.spent_tokens == sum(call["counted"][0] for call in calls)


def test_call_that_failed_and_cost_is_in_the_bill_of_the_resumed_run(tmp_path, monkeypatch):
    """The run was cancelled before the mark was made: nothing but the kept call knows of the reply that was odd."""
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)

    class Odd(Judges):
        async def reply(self, role, ask):
            if not self.asked:
                self.asked.append(None)
                raise ModelFailure("shape", "odd", usage=USED, may_cost=True)
            return await super().reply(role, ask)

    one = {"metrics": ["llm-as-judge"], "models": ("judge",)}
    with open_store(tmp_path / "runs.db") as store:
        evaluated(Odd(Stop(), after=2, slow_s=5), RunStorage(store), **one)
        (odd,) = [call for _, body in kept(store) if "usage" in (call := json.loads(body))]
        assert odd["usage"]["prompt_tokens"] == 100
        report = evaluated(Judges(), RunStorage(store, resume=True), **one)
        assert report.usage.scoring.calls == COUNT + 1
        assert report.usage.scoring.prompt_tokens == 100 * (COUNT + 1)
        assert odd["id"] in [
            each.id for execution in store.executions(report.run.id) for each in execution.marks[0].calls
        ]


def test_damaged_call_is_asked_for_again(tmp_path):
    path = tmp_path / "runs.db"
    whole = evaluated(Judges())
    with open_store(path) as store:
        first = Judges(Stop(), after=14)
        evaluated(first, RunStorage(store))
        assert list(find_damage(store)) == []
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE calls SET body = ? WHERE call = (SELECT min(call) FROM calls)", (b"{}",))
    with open_store(path) as store:
        (said,) = find_damage(store)
        assert "1 model call of" in said
        last = Judges()
        assert len(evaluated(last, RunStorage(store, resume=True)).executions) == COUNT
        assert whole.metrics["llm-as-judge"].n_scored == COUNT
    assert len(first.asked + last.asked) in (3 * COUNT, 3 * COUNT + 1)


def test_rescoring_that_stops_uses_its_votes_again(tmp_path):
    def rescored(store, judges):
        models = judges.roles()
        access = build_model_access(models)
        work = rescore(
            store,
            "latest",
            metrics=resolve_all([PANEL]),
            access=access,
            clock=CLOCK,
            stop=judges.stop or Stop(),
            warn=[].append,
        )
        return run_sync(work)

    with open_store(tmp_path / "runs.db") as store:
        evaluated(Judges(), RunStorage(store), metrics=["exact-match"])
        first, last = Judges(Stop(), after=14), Judges()
        assert rescored(store, first).missing is not None
        run = store.run("latest").id
        assert len(list(store.calls(run, scoring=1))) == len(first.asked)
        assert rescored(store, last).missing is None
        assert list(store.calls(run, scoring=1)) == []
    assert len(first.asked + last.asked) == len({*first.asked, *last.asked}) == 3 * COUNT


class Vectors:
    """A remote embedding model that counts its texts, and asks for a stop after some."""

    identity = {"base_url": "https://models.example/v1", "model": "vectors"}  # noqa: RUF012 - read, never changed

    def __init__(self, stop=None, after=0):
        self.stop, self.after, self.texts = stop, after, []

    async def embed_many(self, texts):
        self.texts += texts
        if self.stop is not None and len(self.texts) >= self.after:
            self.stop.request("enough")
        await asyncio.sleep(0.001)
        values = [[1.0, len(text) % 5 + 1.0] for text in texts]
        return records.Vectors(values=values, usage=Usage(prompt_tokens=7 * len(texts)), model="vectors")


def test_vectors_of_a_stopped_run_are_not_asked_for_again(tmp_path):
    def embedded(client, storage):
        job = resolve_arguments(
            dm.Dataset(SAMPLES, name="d"),
            outputs=OUTPUTS,
            metrics=["cosine-embedding"],
            models={"embedding": Role(client=client, kind="embedding", batch=4, concurrency=1)},
        )
        return ran_in(storage, job, clock=CLOCK, stop=client.stop or Stop(), warn=[].append)

    with open_store(tmp_path / "runs.db") as store:
        first, last = Vectors(Stop(), after=5), Vectors()
        embedded(first, RunStorage(store))
        report = embedded(last, RunStorage(store, resume=True))
        assert report.metrics["cosine-embedding"].n_scored == COUNT
        assert report.usage.scoring.prompt_tokens == 7 * 2 * COUNT
    assert 0 < len(first.texts) < 2 * COUNT
    assert sorted(first.texts + last.texts) == sorted({*first.texts, *last.texts})


def test_panel_that_an_earlier_version_scored_without_a_member_is_completed(tmp_path):
    whole = evaluated(Judges())
    with open_store(tmp_path / "runs.db") as store:
        evaluated(Judges(), RunStorage(store))
        run = store.run("latest").id
        (first,) = (execution for execution in store.executions(run) if not execution.position)
        mark = first.marks[0]
        votes = [*mark.details["votes"][:2], {"role": ROLES[2], "sample": 0, "cause": "not_run", "message": "enough"}]
        cut = msgspec.structs.replace(mark, details={**mark.details, "votes": votes})
        with store.lease(run), store.writer(run) as writer:
            writer.add([msgspec.structs.replace(first, marks=(cut,))])
        told = []
        judges = Judges()
        report = evaluated(judges, RunStorage(store, resume=run, tell=told.append))
        assert len(judges.asked) == 3
        assert told == [f"Resuming the run {run}: {COUNT - 1} of {COUNT} done, 1 answered and not yet scored."]
        again, before = (found.executions[0].marks["llm-as-judge"] for found in (report, whole))
        assert (again.score, again.details) == (before.score, before.details)
        # What was asked anew is in the bill beside what it replaces.
        assert report.usage.scoring.calls == 3 * COUNT + 3
