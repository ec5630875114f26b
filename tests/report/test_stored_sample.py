"""One sample that is read alone is shown as the report of the whole run shows it."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.errors import InputError
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.records import Call, MetricScore, Usage
from deemster.report.sample_report import find_sample, sample_sections
from deemster.report.stored_report import stored_report
from deemster.report.stored_sample import stored_sample
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK


class Sharing:
    """A metric whose marks of three neighbours share a call, and each of which stands on a call of its own too."""

    name = "sharing"

    def score(self, sample, _output):
        n = sample.input["n"]
        calls = (Call(1 + n // 3, Usage(prompt_tokens=7)), Call(100 + n, Usage(prompt_tokens=5)))
        return MetricScore(1.0, usage=Usage(calls=2, prompt_tokens=12), calls=calls)


class OneCall:
    """A metric all of whose marks stand on one call."""

    name = "one-call"

    def score(self, _sample, _output):
        return MetricScore(1.0, usage=Usage(calls=1, prompt_tokens=7), calls=(Call(11),))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    where = request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "runs.db"
    with open_store(where) as opened:
        yield opened


def stored_run(store, **more):
    rows = [dm.Sample(f"s{n}", {"n": n}, f"{n % 2}", {"tags": ["a" if n % 2 else "b"]}) for n in range(12)]

    def answer(invocation):
        if invocation["n"] == 7:
            raise LookupError("no answer")
        return "1"

    given = {
        "target": answer,
        "metrics": ["exact-match", {"contains": {"where": {"tags": ["a"]}}}, Sharing(), OneCall()],
        "repetitions": 2,
        "max_unscored": "50%",
    }
    job = resolve_arguments(dm.Dataset(rows, name="d"), **arguments(**given | more))
    ran_in(RunStorage(store), job, clock=CLOCK, warn=lambda _: None)


def shown(report, sample_id):
    return list(sample_sections(report, find_sample(report, sample_id)))


def test_every_sample_is_shown_as_in_the_whole_report(store):
    stored_run(store)
    whole = stored_report(store, "latest")
    for position in range(12):
        alone = stored_sample(store, "latest", f"s{position}")
        assert alone.position == position
        assert shown(alone.report, f"s{position}") == shown(whole, f"s{position}")


def test_unknown_sample_is_answered_with_the_nearest_id(store):
    stored_run(store)
    with pytest.raises(InputError, match=r"no sample 's99'\. Did you mean"):
        stored_sample(store, "latest", "s99")
