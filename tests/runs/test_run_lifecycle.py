"""A run that was interrupted ends in the same report as one that was not."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError, LeaseError, StoreError
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models import ModelFailure, Price, Role
from deemster.records import Answer, MetricScore, Unscored, Usage
from deemster.report.stored_report import stored_report
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK

PRICES = {"": Price(Decimal(1), Decimal(2))}


class Bot:
    """A target that counts its calls, stops the run at a given call, and fails on given samples."""

    def __init__(self):
        self.calls = []
        self.stop = None
        self.stop_at = None
        self.failing = set()
        self.identity = {"bot": 1}

    async def __call__(self, invocation):
        self.calls.append((invocation.id, invocation.repetition))
        if self.stop is not None and len(self.calls) == self.stop_at:
            self.stop.request("enough")
        await asyncio.sleep(0)
        if invocation.id in self.failing:
            raise TimeoutError("no answer")
        return f"answer {invocation.id[1:]}" if invocation.repetition == 0 else "something else"


def target(bot):
    async def answer(invocation):
        return await bot(invocation)

    return answer


def samples(count=12):
    return dm.Dataset(
        [
            dm.Sample(
                f"s{number}", {"n": number}, f"answer {number % 4}", {"tags": ["even" if number % 2 == 0 else "odd"]}
            )
            for number in range(count)
        ],
        name="d",
    )


def job(bot, **more):
    given = {"metrics": ["exact-match", "rouge-l"], "repetitions": 2, "concurrency": 3, "gate": {"min_macro_f1": 0.1}}
    given |= more
    data = given.pop("dataset", None) or samples()
    return resolve_arguments(data, target=target(bot), **arguments(**given))


def ran(store, what, *, stop=None, resume=None, allow_changed=False, told=None):
    tell = (lambda _: None) if told is None else told.append
    keeping = RunStorage(store, resume, allow_changed, tell)
    return ran_in(keeping, what, clock=CLOCK, stop=stop, warn=lambda _: None)


@pytest.fixture
def whole():
    """The bytes of an uninterrupted run without a store."""
    return run_sync(run_evaluation(job(Bot()), clock=CLOCK, warn=lambda _: None)).to_json()


def test_stored_and_unstored_run_give_same_bytes(store, whole):
    assert ran(store, job(Bot())).to_json() == whole


@pytest.mark.parametrize("at", range(1, 25, 4))
def test_run_stopped_at_any_point_resumes_to_same_bytes(store, whole, at):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), at
    partial = ran(store, job(bot), stop=bot.stop)
    assert partial.run.status == ("incomplete" if partial.totals.not_run else "complete")
    assert stored_report(store, "latest").to_json() == partial.to_json()
    told = []
    report = ran(store, job(bot), resume=True, told=told)
    assert report.to_json() == whole
    assert stored_report(store, report.run.id).to_json() == whole
    assert sorted(bot.calls) == sorted({(f"s{number}", repetition) for number in range(12) for repetition in range(2)})
    assert len(store.runs()) == 1
    assert told[0].startswith(("Resuming the run", "Nothing is left to do"))


def test_run_resumes_many_times(store, whole):
    bot = Bot()
    reports = []
    for _ in range(30):
        bot.stop, bot.stop_at = Stop(), len(bot.calls) + 2
        reports.append(ran(store, job(bot), stop=bot.stop, resume=True))
        if not reports[-1].totals.not_run:
            break
    assert len(reports) > 3
    assert reports[-1].to_json() == whole
    assert len(bot.calls) == 24


def test_run_that_an_interrupt_ended_is_stopped_and_resumed(store, whole):
    def dies(executions):
        raise KeyboardInterrupt

    bot = Bot()
    what = job(bot)
    with pytest.raises(KeyboardInterrupt):
        run_sync(run_evaluation(what, clock=CLOCK, warn=lambda _: None, storage=RunStorage(store), progress=dies))
    row = store.run("latest")
    assert (row.status, row.reason, store.owner(row.id)) == ("incomplete", "It was interrupted.", None)
    assert 0 < row.done < 24
    shown = stored_report(store, row.id)
    assert (shown.run.status, shown.totals.not_run) == ("incomplete", 48 - 2 * row.done)
    assert ran(store, job(bot), resume=True).to_json() == whole


def test_resume_of_complete_run_does_nothing(store):
    bot = Bot()
    first = ran(store, job(bot))
    told = []
    assert ran(store, job(bot), resume=first.run.id, told=told).to_json() == first.to_json()
    assert told == [f"Nothing is left to do of the run {first.run.id}; this is its report."]
    assert len(bot.calls) == 24


def test_resume_without_run_begins_new_run(store):
    told = []
    report = ran(store, job(Bot()), resume=True, told=told)
    assert report.run.status == "complete"
    assert told == ["There is no run to resume; this is a new one."]


def test_resume_takes_last_unfinished_run_before_later_complete_one(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 3
    unfinished = ran(store, job(bot), stop=bot.stop)
    ran(store, job(Bot(), seed=7))
    assert ran(store, job(bot), resume=True).run.id == unfinished.run.id


def test_run_of_another_suite_is_not_resumed(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 3
    ran(store, job(bot)._replace(suite="other"), stop=bot.stop)
    assert ran(store, job(Bot())._replace(suite="mine"), resume=True).run.suite == "mine"
    assert len(store.runs()) == 2


def test_unknown_run_is_error_with_suggestion(store):
    ran(store, job(Bot()))
    with pytest.raises(StoreError, match="holds no run `20260102"):
        ran(store, job(Bot()), resume="20260102T000000Z-abcdef")


def test_resume_repeats_only_failed_target_calls(store, whole):
    bot = Bot()
    bot.failing = {"s3", "s7"}
    broken = ran(store, job(bot))
    assert (broken.totals.target_failures, broken.run.status) == (4, "incomplete")
    bot.failing = set()
    before = len(bot.calls)
    assert ran(store, job(bot), resume=True).to_json() == whole
    assert sorted(bot.calls[before:]) == [("s3", 0), ("s3", 1), ("s7", 0), ("s7", 1)]


def test_resume_does_not_retry_saved_failures(store):
    outputs = {f"s{number}": f"answer {number}" for number in range(12)} | {"s3": {"error": "no answer"}}
    what = resolve_arguments(samples(), outputs=outputs, metrics=["exact-match"])
    first = ran(store, what)
    told = []
    assert ran(store, what, resume=True, told=told).to_json() == first.to_json()
    assert "Nothing is left to do" in told[0]


class Failing:
    """A metric that raises for some samples, until it does not."""

    name = "moody"

    def __init__(self):
        self.seen = []
        self.bad = {"s2", "s5"}

    def score(self, sample, output):
        self.seen.append(sample.id)
        if sample.id in self.bad:
            raise RuntimeError("not today")
        return MetricScore(1.0)


def test_resume_repeats_only_failed_marks_on_stored_output(store):
    bot, moody = Bot(), Failing()
    first = ran(store, job(bot, metrics=["exact-match", moody], repetitions=1))
    assert first.totals.unscored == 2
    moody.bad, moody.seen = set(), []
    calls = len(bot.calls)
    second = ran(store, job(bot, metrics=["exact-match", moody], repetitions=1), resume=True)
    assert (second.totals.unscored, second.run.status) == (0, "complete")
    assert sorted(moody.seen) == ["s2", "s5"]
    assert len(bot.calls) == calls


class Judge:
    """A model that fails for a while and counts its requests."""

    def __init__(self):
        self.asked = 0
        self.healthy = 5
        self.identity = {"model": "judge-1"}

    async def complete(self, ask):
        self.asked += 1
        if self.asked > self.healthy:
            raise ModelFailure("the model is away", cause="model_failed")
        usage = Usage(prompt_tokens=100, completion_tokens=10)
        return Answer(
            text=json.dumps({"reason": f"number {len(ask.messages[-1].content)}", "score": 0.75}),
            usage=usage,
            model="m",
        )


def judged(bot, judge, **more):
    role = Role(client=judge, prices=PRICES, retries=0, concurrency=1)
    return job(bot, metrics=["exact-match", "llm-as-judge"], repetitions=1, models={"judge": role}, **more)


def test_failed_model_call_is_repeated_and_charged_once(store):
    healthy = Judge()
    healthy.healthy = 1000
    expected = run_sync(run_evaluation(judged(Bot(), healthy), clock=CLOCK, warn=lambda _: None))
    bot, judge = Bot(), Judge()
    first = ran(store, judged(bot, judge))
    assert first.metrics["llm-as-judge"].n_scored == 5
    assert first.metrics["exact-match"].n_scored == 12
    judge.healthy, before = 1000, judge.asked
    second = ran(store, judged(bot, judge), resume=True)
    assert second.to_json() == expected.to_json()
    assert judge.asked - before == 7
    assert len(bot.calls) == 12


class Rambling(Judge):
    """A judge whose first replies hold no verdict; every reply costs 110 tokens."""

    async def complete(self, ask):
        self.asked += 1
        rubbish = self.asked <= self.healthy
        text = f"Well, {self.asked}." if rubbish else json.dumps({"reason": "so", "score": 0.75})
        return Answer(text=text, usage=Usage(prompt_tokens=100, completion_tokens=10), model="m")


@pytest.mark.parametrize("cached", [False, True])
def test_cost_of_failed_attempt_is_kept_after_resume(store, tmp_path, cached):
    bot, judge = Bot(), Rambling()
    judge.healthy = 7
    cache = tmp_path / "cache.jsonl" if cached else None
    reports = [ran(store, judged(bot, judge, cache=cache))]
    assert 1 <= reports[0].totals.unscored <= 4
    for _ in range(2):
        reports.append(ran(store, judged(bot, judge, cache=cache), resume=True))
        usage = reports[-1].usage.scoring
        assert usage.calls == judge.asked
        assert usage.total_tokens is None
        assert (usage.prompt_tokens, usage.completion_tokens) == (100 * judge.asked, 10 * judge.asked)
        assert reports[-1].cost.total_usd == Decimal("0.00012") * judge.asked
        assert stored_report(store, "latest").to_json() == reports[-1].to_json()
    # The cache would give the same unreadable reply, so the question is sent as a new one.
    assert reports[-1].totals.unscored == 0


def test_each_resume_sends_unreadable_question_as_new_one(store, tmp_path):
    bot, judge = Bot(), Rambling()
    judge.healthy = 10_000
    cache = tmp_path / "cache.jsonl"
    for turn in range(1, 4):
        ran(store, judged(bot, judge, cache=cache), resume=True)
        assert judge.asked == turn * 12 * 2


def test_offline_resume_keeps_unreadable_reply(store, tmp_path):
    bot, judge = Bot(), Rambling()
    judge.healthy = 10_000
    cache = tmp_path / "cache.jsonl"
    first = ran(store, judged(bot, judge, cache=cache))
    again = ran(store, judged(bot, judge, cache=cache, offline=True), resume=True)
    assert judge.asked == 12 * 2
    assert again.metrics["llm-as-judge"].unscored_by_cause == first.metrics["llm-as-judge"].unscored_by_cause


def test_resume_does_not_reset_budget(store):
    bot, judge = Bot(), Rambling()
    judge.healthy = 1000
    limit = 12 * 2 * 110 + 5 * 2500
    for _ in range(8):
        report = ran(store, judged(bot, judge, budget_tokens=limit), resume=True)
        assert report.budget.spent_tokens == 110 * judge.asked == report.usage.scoring.prompt_tokens * 11 // 10
    assert report.budget.halted
    assert 110 * judge.asked <= limit


def test_budget_includes_earlier_spending(store):
    bot, judge = Bot(), Judge()
    ran(store, judged(bot, judge))
    judge.healthy = 1000
    report = ran(store, judged(bot, judge, budget_tokens=5 * 110 + 3 * 2500), resume=True)
    assert report.budget.spent_tokens >= 5 * 110 + 110
    assert stored_report(store, "latest").budget == report.budget
    spent = ran(store, judged(bot, judge, budget_tokens=100), resume=True)
    assert spent.budget.halted or not spent.totals.not_run


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 7}, "seed: was 42, is 7"),
        ({"metrics": ["exact-match", {"rouge-l": {"threshold": 0.9}}]}, "metrics.rouge-l.threshold: was 0.5, is 0.9"),
        ({"thresholds": {"rouge-l": 0.25}}, "metrics.rouge-l.threshold: was 0.5, is 0.25"),
        ({"metrics": ["exact-match"]}, "metrics.rouge-l: was rouge-l v1, is not there"),
        ({"repetitions": 3}, "repetitions: was 2, is 3"),
        ({"aggregator": "min"}, "aggregator: was not there, is min"),
        ({"dataset": samples(11)}, "dataset: was "),
        ({"dataset": dm.Dataset(reversed(list(samples())), name="d")}, "order: was "),
    ],
)
def test_changed_run_is_error_with_every_difference(store, change, told):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    with pytest.raises(ConfigurationError, match="cannot be resumed") as refused:
        ran(store, job(bot, **change), resume=True)
    assert told in str(refused.value)
    assert "--allow-changed" in str(refused.value)
    assert store.run("latest").status == "incomplete"


def test_gate_and_limits_may_change_on_resume(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    report = ran(store, job(bot, gate={"min_pass_rate": 0.99}, concurrency=1), resume=True)
    assert (report.run.status, report.gate.decision) == ("complete", "fail")
    assert stored_report(store, "latest").to_json() == report.to_json()


def test_order_of_metrics_may_change_on_resume(store, whole):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    assert ran(store, job(bot, metrics=["rouge-l", "exact-match"]), resume=True).to_json() == whole


def test_allowed_change_marks_report_as_mixed(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    report = ran(store, job(bot, seed=7), resume=True, allow_changed=True)
    assert (report.run.status, report.run.reason) == ("mixed", "resumed with changes: seed: was 42, is 7")
    assert store.run("latest").status == "mixed"
    assert stored_report(store, "latest").to_json() == report.to_json()
    again = ran(store, job(bot, seed=7), resume=report.run.id)
    assert again.to_json() == report.to_json()


def test_allowed_edit_of_sample_shows_stored_sample(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    edited = [dm.Sample(each.id, each.input, "something else", {"tags": "new"}) for each in samples()]
    report = ran(store, job(bot, dataset=dm.Dataset(edited, name="d")), resume=True, allow_changed=True)
    assert report.run.status == "mixed"
    assert [cohort.label for cohort in report.cohort_list] == ["even", "odd"]
    assert {entry.expected_output for entry in report.samples} == {f"answer {n}" for n in range(4)}
    assert stored_report(store, "latest").to_json() == report.to_json()


def test_stopped_mixed_run_stays_mixed(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    bot.stop, bot.stop_at = Stop(), 10
    partial = ran(store, job(bot, seed=7), stop=bot.stop, resume=True, allow_changed=True)
    assert partial.run.status == "incomplete"
    assert partial.run.reason.endswith("resumed with changes: seed: was 42, is 7")
    report = ran(store, job(bot, seed=7), resume=True)
    assert report.run.status == "mixed"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"repetitions": 3}, "The repetitions were 2 and are 3."),
        (
            {"metrics": ["exact-match", "contains"]},
            "The metrics were exact-match, rouge-l and are exact-match, contains.",
        ),
        ({"dataset": samples(11)}, "The dataset has other samples"),
        ({"dataset": dm.Dataset(reversed(list(samples())), name="d")}, "or has them in another order"),
    ],
)
def test_allow_changed_never_mixes_samples_metrics_or_repetitions(store, change, told):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    ran(store, job(bot), stop=bot.stop)
    with pytest.raises(ConfigurationError) as refused:
        ran(store, job(bot, **change), resume=True, allow_changed=True)
    assert told in str(refused.value)


def test_run_of_other_process_is_error_with_host_and_pid(tmp_path):
    bot = Bot()
    with open_store(tmp_path / "runs.db") as mine, open_store(tmp_path / "runs.db") as other:
        bot.stop, bot.stop_at = Stop(), 5
        report = ran(mine, job(bot), stop=bot.stop)
        with other.lease(report.run.id), pytest.raises(LeaseError, match=r"process [0-9]+"):
            ran(mine, job(bot), resume=True)


def test_unfit_aggregator_ends_run_and_store_has_reason(store):
    class Picky(dm.results.MetricsAggregator):
        def compute_score(self, named_results):
            return 2.0

    with pytest.raises(ConfigurationError, match="it lies between 0 and 1"):
        ran(store, job(Bot(), aggregator=Picky()))
    row = store.run("latest")
    assert row.status == "incomplete"
    assert "it lies between 0 and 1" in row.reason


def test_evaluate_stores_nothing_by_default(folder):
    dm.evaluate(samples(), target=lambda _: "x", metrics=["exact-match"], settings=dm.EvaluationSettings(clock=CLOCK))
    assert list(folder.iterdir()) == []


def test_evaluate_stores_and_resumes_by_path(tmp_path):
    given = {"outputs": {f"s{number}": "x" for number in range(12)}, "metrics": ["exact-match"], "clock": CLOCK}
    first = dm.evaluate(samples(), **arguments(where=tmp_path / "runs.db", **given))
    again = asyncio.run(
        dm.evaluate_async(samples(), **arguments(where=str(tmp_path / "runs.db"), resume=True, **given))
    )
    assert again.to_json() == first.to_json() == dm.evaluate(samples(), **arguments(**given)).to_json()
    with open_store(tmp_path / "runs.db") as kept:
        assert [row.id for row in kept.runs()] == [first.run.id]


def test_permanent_unscored_mark_is_not_retried(store):
    class Never:
        name = "never"

        def score(self, sample, output):
            return Unscored("bad_sample", "no")

    what = job(Bot(), metrics=[Never()], max_unscored="100%")
    first = ran(store, what)
    told = []
    assert ran(store, what, resume=True, told=told).to_json() == first.to_json()
    assert "Nothing is left to do" in told[0]


def test_progress_includes_earlier_executions(store):
    bot = Bot()
    bot.stop, bot.stop_at = Stop(), 5
    partial = ran(store, job(bot), stop=bot.stop)
    done = partial.totals.executions - partial.totals.not_run // 2
    seen = []
    keeping = RunStorage(store, resume=True)
    ran_in(keeping, job(bot), clock=CLOCK, warn=lambda _: None, progress=seen.append)
    assert seen[0].done > done
    assert (seen[-1].done, seen[-1].total) == (24, 24)
