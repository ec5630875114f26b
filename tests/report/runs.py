"""A run with every kind of content, and named secret texts that must not leak."""

from __future__ import annotations

import functools
from datetime import UTC, datetime

import deemster as dm
from deemster.judges import metric_catalog as catalog
from deemster.models.clock import FrozenClock

CLOCK = FrozenClock(datetime(2025, 6, 15, 12, 0, tzinfo=UTC))
CANARIES = {
    "input": "canary-input-01",
    "output": "canary-output-02",
    "retrieved": "canary-retrieved-03",
    "trajectory": "canary-trajectory-04",
    "expected": "canary-expected-05",
    "metadata": "canary-metadata-06",
    "target error": "canary-error-07",
    "metric failure": "canary-failure-08",
    "quoting detail": "canary-quote-09",
    "unknown detail": "canary-unknown-10",
    "other detail": "canary-other-11",
}


class Quoting:
    """Declares which details quote text."""

    name = "quoting"
    quotes = frozenset({"said"})

    def score(self, sample, output):
        details = {"said": [CANARIES["quoting detail"]], "kind": CANARIES["other detail"], "length": 3, "long": False}
        return dm.MetricScore(0.75, details)


class Silent:
    """Does not declare quotes, and fails on one sample."""

    name = "silent"

    def score(self, sample, output):
        if sample.id == "broken":
            raise ValueError(CANARIES["metric failure"])
        details = {"heard": CANARIES["unknown detail"], "parts": {"x": [CANARIES["unknown detail"]]}, "share": 1 / 3}
        return dm.MetricScore(2 / 3, details, threshold=0.7)


def samples():
    return [
        dm.Sample(
            name,
            {"question": CANARIES["input"]},
            CANARIES["expected"],
            {"tags": tags, "owner": CANARIES["metadata"], "relevant": ["d1"]},
        )
        for name, tags in (("window", ["policy", "refunds"]), ("fee", ["policy"]), ("broken", []), ("silence", []))
    ]


def answers():
    full = {
        "outputs": [CANARIES["output"], CANARIES["output"] + "!"],
        "retrieved": [{"id": "d1", "text": CANARIES["retrieved"]}, "d2"],
        "trajectory": {"tools": [{"name": "search", "args": {"q": CANARIES["trajectory"]}}], "steps": 2},
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "latency_ms": 12.5, "cost_usd": 0.00001234},
        "model": "small-model",
    }
    failed = [{"id": "silence", "error": CANARIES["target error"], "repetition": number} for number in range(2)]
    return [*({"id": name, **full} for name in ("window", "fee", "broken")), *failed]


METRICS = (Quoting(), Silent(), "exact-match", "retrieval-hit-at-k")


@functools.cache
def full_report():
    return dm.evaluate(
        dm.Dataset(samples(), name="support"),
        outputs=dm.targets.SavedOutputs(answers()),
        metrics=METRICS,
        gate={"min_macro_f1": 0.9, "cohorts": {"*": {"min_pass_rate": 0.1, "min_samples": 2}}, "max_unscored": "50%"},
        settings=dm.EvaluationSettings(clock=CLOCK),
    )


def quotes_of(name):
    """The declared quotes of each metric of the run."""
    return {metric.name: catalog.quotes(metric) for metric in catalog.resolve_all(METRICS)}[name]


def small_report(*ids, outputs=None, metrics=("exact-match",), expected="yes", tags=(), **options):
    """A report of one answer to each id, right unless given."""
    rows = [dm.Sample(name, {}, expected, {"tags": list(tags)} if tags else {}) for name in ids or ("a",)]
    given = outputs if outputs is not None else {row.id: "yes" for row in rows}
    dataset = dm.Dataset(rows, name=options.pop("name", "small"))
    settings = dm.EvaluationSettings(clock=CLOCK)
    return dm.evaluate(dataset, outputs=given, metrics=list(metrics), settings=settings, **options)
