"""What the viewer says of runs: the list, the trend of every suite, one run with its report, its progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

import msgspec

from deemster.errors import ReportError, StoreError
from deemster.results.run_summary import cohort_label
from deemster.runs.run_figures import RunFigures, stored_figures
from deemster.store import RunRow, Store
from deemster.view.live_usage import usage_entry
from deemster.view.opened_run import OpenedRun
from deemster.view.run_cache import RunCache
from deemster.view.sample_query import metadata_keys

_FILTERS = ("kind", "suite", "dataset", "label")


def run_list(store: Store, filters: Mapping[str, str], *, offset: int, limit: int) -> dict[str, Any]:
    """A page of the list of runs, the newest first; those of an experiment stand together and are one line.

    Args:
        store: The store.
        filters: What runs must be: `kind`, `suite`, `dataset`, `label`; `status` is theirs or their gate's; `q` is
            a part of any of their names.
        offset: How many lines are passed over.
        limit: How many lines are shown at most.

    Raises:
        StoreError: The store fails.
    """
    baselines = {baseline.run for baseline in store.baselines()}
    lines: dict[tuple[str | None, str | None], list[dict[str, Any]]] = {}
    for row in store.runs(on_damage=lambda _: None):
        entry = run_entry(store, row, baselines)
        words = " ".join(str(entry[name]) for name in ("id", "label", "suite", "dataset", "target") if entry[name])
        status = filters.get("status")
        if (
            filters.get("q", "").casefold() in words.casefold()
            and all(entry[name] == filters[name] for name in _FILTERS if filters.get(name))
            and (not status or status in (entry["status"], entry["gate"]))
        ):
            line = (row.experiment, row.id if row.experiment is None else None)
            lines.setdefault(line, []).append(entry)

    return {
        "total": sum(map(len, lines.values())),
        "lines": len(lines),
        "runs": [entry for line in islice(lines.values(), offset, offset + limit) for entry in line],
    }


def run_entry(store: Store, row: RunRow, baselines: Collection[str]) -> dict[str, Any]:
    """A run as lists show it; its numbers are None while it runs.

    Args:
        store: The store.
        row: The run.
        baselines: The ids of all baselines.

    Raises:
        StoreError: The store fails.
    """
    figures = stored_figures(row)
    return {
        "id": row.id,
        "kind": row.kind,
        "experiment": row.experiment,
        "suite": row.suite,
        "dataset": row.dataset,
        "label": row.facts.get("label"),
        "target": row.facts.get("target"),
        "status": run_status(store, row),
        "reason": row.reason,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "duration_s": row.duration_s,
        "samples": row.samples,
        "repetitions": row.repetitions,
        "done": row.done,
        "total": _total(row),
        "gate": None if figures is None else figures.gate,
        "cost_usd": None if figures is None or figures.cost_usd is None else float(figures.cost_usd),
        "is_whole_cost": figures is None or figures.is_whole_cost,
        "partial": row.facts.get("part") is not None,
        "is_baseline": row.id in baselines,
        **_numbers(figures),
    }


def _numbers(figures: RunFigures | None) -> dict[str, Any]:
    if figures is None:
        return {
            **dict.fromkeys(("macro_f1", "macro_f1_interval", "pass_rate", "pass_rate_interval")),
            "metrics": {},
        }
    return {
        "macro_f1": figures.macro_f1,
        "macro_f1_interval": figures.macro_f1_interval,
        "pass_rate": figures.pass_rate,
        "pass_rate_interval": figures.pass_rate_interval,
        "metrics": {
            name: {"mean": metric.mean, "pass_rate": metric.pass_rate, "interval": metric.pass_rate_interval}
            for name, metric in figures.metrics.items()
        },
    }


def run_status(store: Store, row: RunRow) -> str:
    """How a run stands; `stopped` where it says `running` and no process writes it.

    Args:
        store: The store.
        row: The run.

    Raises:
        StoreError: The store fails.
    """
    if row.status != "running":
        return row.status
    owner = store.owner(row.id)
    return "running" if owner is not None and owner.alive else "stopped"


def _total(row: RunRow) -> int:
    return row.samples * row.repetitions


def trend_list(store: Store) -> dict[str, Any]:
    """The finished evaluations of every suite, the oldest first, so that their numbers can be drawn over time.

    The runs of an experiment differ by more than time: those of one label are drawn together.

    Args:
        store: The store.

    Raises:
        StoreError: The store fails.
    """
    baselines = {baseline.run for baseline in store.baselines()}
    suites: dict[tuple[str | None, str, str | None], list[dict[str, Any]]] = {}
    for row in reversed(store.runs(kind="run", on_damage=lambda _: None)):
        figures = stored_figures(row)
        if figures is None or row.facts.get("part") is not None:
            continue
        # Runs without a suite are told apart by their dataset, as baselines are.
        key = (row.suite, row.dataset if row.suite is None else "", row.experiment and row.facts.get("label"))
        suites.setdefault(key, []).append(
            {
                "id": row.id,
                "label": row.facts.get("label"),
                "dataset": row.dataset,
                "fingerprint": row.fingerprint,
                "started_at": row.started_at,
                "status": row.status,
                "samples": row.samples,
                "gate": figures.gate,
                "is_baseline": row.id in baselines,
                **_numbers(figures),
            }
        )
    return {
        "suites": [
            {"suite": suite, "label": label, "dataset": runs[-1]["dataset"], "runs": runs}
            for (suite, _, label), runs in suites.items()
        ]
    }


def run_page(run: OpenedRun) -> dict[str, Any]:
    """One run: its report without samples, executions and failures, and what filters can ask for.

    Args:
        run: The run.

    Raises:
        StoreError: The store fails.
    """
    row, store = run.row, run.store
    entry = run_entry(store, row, {baseline.run for baseline in store.baselines()})
    page: dict[str, Any] = {
        name: entry[name]
        for name in ("kind", "experiment", "label", "target", "status", "is_baseline", "done", "total")
    }
    try:
        report, without = run.head(), None
    except ReportError as error:
        report, without = _empty_report(run, entry), str(error)
    return {
        **report,
        **page,
        "why_no_report": without,
        **run.page(),
        "failures": _causes(report["metrics"]),
        "tags": _tags(run, report),
        "causes": sorted(_causes(report["metrics"])),
        "metadata_keys": [{"key": key, "values": values} for key, values in metadata_keys(run).items()],
        "compare_with": _run_to_compare_with(store, row),
    }


def _run_to_compare_with(store: Store, row: RunRow) -> dict[str, Any] | None:
    """The baseline of a run's suite, else the run before it; None where there is neither."""
    if row.kind != "run":
        return None

    baseline = store.baseline(row.suite, row.dataset)
    if baseline is not None and baseline.run != row.id:
        return {"id": baseline.run, "is_baseline": True}

    label = row.facts.get("label")
    for earlier in store.runs(
        suite=row.suite, dataset=row.dataset, kind="run", until=row.started_at, on_damage=lambda _: None
    ):
        # Beside it in its experiment stand runs of something else.
        if row.experiment is None or (earlier.experiment != row.experiment and earlier.facts.get("label") == label):
            return {"id": earlier.id, "is_baseline": False}
    return None


def _empty_report(run: OpenedRun, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a report for a run that has none, such as a recording without marks."""
    row = run.row
    shown = ("id", "suite", "status", "reason", "started_at", "finished_at", "duration_s", "label", "target")
    return {
        "run": {**{name: entry[name] for name in shown}, "seed": row.seed},
        "dataset": {"name": row.dataset, "fingerprint": row.fingerprint or None},
        "totals": {"samples": row.samples, "repetitions": row.repetitions, "executions": row.done, "metrics": 0},
        **dict.fromkeys(("macro_f1", "macro_f1_interval", "pass_rate", "pass_rate_interval")),
        "metric_order": [],
        "metrics": {},
        "histograms": {},
        "cohorts": [],
        **dict.fromkeys(("aggregate", "precision", "usage", "cost", "budget", "gate", "adversarial")),
    }


def _causes(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """How many marks have no score, by cause."""
    found: dict[str, int] = {}
    for figures in metrics.values():
        for cause, count in {**figures["unscored_by_cause"], "not_run": figures["n_not_run"]}.items():
            if count:
                found[cause] = found.get(cause, 0) + count
    return found


def _tags(run: OpenedRun, report: Mapping[str, Any]) -> list[dict[str, Any]]:
    if report["cohorts"]:
        return [{"name": cohort["label"], "samples": cohort["samples"]} for cohort in report["cohorts"]]
    return [{"name": cohort_label(tag), "samples": len(found)} for tag, found in run.table.cohorts]


def run_progress(cache: RunCache, name: str) -> dict[str, Any]:
    """How far a run is, and what it used so far.

    Args:
        cache: Opens runs.
        name: The run.

    Raises:
        StoreError: There is no such run, or the store fails.
    """
    store = cache.store
    row = store.run(name)
    return {
        "id": row.id,
        "status": run_status(store, row),
        "reason": row.reason,
        "done": row.done,
        "total": _total(row),
        "samples": row.samples,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "scorings": msgspec.to_builtins([(one.number, one.status, one.done) for one in row.scorings]),
        "usage": _usage(cache, row),
    }


def _usage(cache: RunCache, row: RunRow) -> dict[str, Any] | None:
    """The calls, tokens and cost of a run: as its report has them, or of what is counted of a run in progress."""
    if row.status == "running":
        return cache.live_usage(row).read() if row.kind == "run" else None
    try:
        report = cache.open(row.id).head()
    except (ReportError, StoreError):
        return None
    return usage_entry(row.done, report["usage"]["total"], report["cost"])
