"""The figures of a run are read as they are kept, those of earlier versions too."""

from __future__ import annotations

from deemster.runs.run_figures import stored_figures
from deemster.store.run_facts import RunRow


def ended(figures):
    return RunRow(
        id="r",
        dataset="d",
        fingerprint="",
        samples=4,
        status="complete",
        started_at="2026-01-01T00:00:00.000Z",
        tool_version="0.1.0",
        facts={"figures": figures},
        number=1,
        done=4,
        scorings=(),
    )


KEPT = {"macro_f1": 0.5, "gate": None, "cost_usd": None, "is_whole_cost": True}


def test_counts_of_an_earlier_version_give_pass_rates():
    outcome = {"metric": "exact-match", "passed": 1, "failed": 2, "unscored": {"not_run": 1}, "not_applicable": 0}
    figures = stored_figures(ended({**KEPT, "outcomes": [outcome, {**outcome, "metric": "x", "passed": 2}]}))
    assert {name: metric.pass_rate for name, metric in figures.metrics.items()} == {"exact-match": 0.25, "x": 0.4}


def test_metrics_count_before_what_earlier_versions_kept():
    metric = {"mean": 0.5, "pass_rate": 0.75, "pass_rate_interval": [0.3, 0.9]}
    outcome = {"metric": "exact-match", "passed": 1, "failed": 3, "unscored": {}}
    figures = stored_figures(ended({**KEPT, "outcomes": [outcome], "metrics": {"exact-match": metric}}))
    assert figures.metrics["exact-match"].pass_rate == 0.75


def test_figures_that_cannot_be_read_are_none():
    assert stored_figures(ended({"macro_f1": "high"})) is None
    assert stored_figures(ended(None)) is None
