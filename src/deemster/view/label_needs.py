"""How many more labels decide something: a rule of the gate, or the pass-rate of a metric to a useful precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from deemster.errors import plural
from deemster.results.gate_rules import Gate, Rule
from deemster.results.metric_summary import SCORED
from deemster.runs.metric_catalog import card_spellings
from deemster.runs.people_labels import FAIL, PASS, LabelTask
from deemster.stats import ConfidenceInterval, phi, ppi_mean, wilson
from deemster.stats.power_analysis import label_size
from deemster.store import LabelFacts
from deemster.view.run_cache import OpenedRun

# The half-width of the interval that labels are counted for where no rule waits for them.
_HALF_WIDTH = 0.05
# With fewer labels than this, nothing is said of how the judge follows people.
_FEW = 10
# A rate that lies on a bound is told from it by no number of labels but all.
_NEAREST = 1e-6


class _PeopleRate:
    """The pass-rate of a metric as people see it, with the judge's help where there are labels enough.

    Attributes:
        n: How many outputs are labelled.
        value: The rate.
        interval: Its interval at 95 %; None where it has none.
        correlation: Of the judge's verdicts with people's; 0 where too few are labelled.
        sd: The standard deviation of people's verdicts: never 0, since all alike so far does not mean all alike.
    """

    def __init__(self, run: OpenedRun, task: LabelTask, labels: Sequence[LabelFacts]) -> None:
        said: dict[tuple[int, int], list[bool]] = {}
        for label in labels:
            if label.verdict in (PASS, FAIL):
                said.setdefault((label.position, label.repetition), []).append(label.verdict == PASS)
        truth = [2 * sum(answers) >= len(answers) for answers in said.values()]
        judged = [run.verdict(position, repetition, task.title) for position, repetition in said]
        known = [(real, found == PASS) for real, found in zip(truth, judged, strict=True) if found is not None]
        self.n = len(truth)
        likely = (sum(truth) + 2) / (self.n + 4)
        self.sd = (likely * (1 - likely)) ** 0.5
        self.correlation = 0.0
        if len(known) >= _FEW:
            self.correlation = max(0.0, phi(*zip(*known, strict=True)).value or 0.0)
        alone = wilson(sum(truth), self.n)
        self.value: float | None = alone.value
        self.interval: ConfidenceInterval | None = alone.interval
        if not self.correlation:
            return
        place = run.names.index(task.title)
        others = run.table.causes[:, :, place] == SCORED
        others[tuple(np.array(list(said)).T)] = False
        if others.any():
            people, judge = zip(*known, strict=True)
            helped = ppi_mean(people, judge, run.table.passed[:, :, place][others], bounds=(0.0, 1.0))
            self.value, self.interval = helped.value, helped.interval

    @property
    def helper(self) -> str:
        """What is said of the judge's help."""
        return "" if not self.correlation else f", with the help of the judge (correlation {self.correlation:.2f})"


def needed_labels(run: OpenedRun, task: LabelTask, labels: Sequence[LabelFacts]) -> list[dict[str, Any]]:
    """How many more labels of a metric settle each rule of the run's gate about its pass-rate.

    A rule is settled once the interval of the rate that people see leaves the bound out. Where no rule is about it,
    labels are counted for an interval of a useful width.

    Args:
        run: The run.
        task: The metric.
        labels: What people said about it.

    Raises:
        StoreError: The store fails.
    """
    rate = _PeopleRate(run, task, labels)
    rules = [rule for rule in _rules(run, task) if rate.value is not None]
    return [_settle(run, task, rate, rule) for rule in rules] or [_narrow(run, task, rate)]


def _rules(run: OpenedRun, task: LabelTask) -> list[Rule]:
    """The rules about the metric's pass-rate over the whole run."""
    gate = msgspec.convert(run.row.facts.get("gate"), Gate | None)
    spellings = card_spellings(run.cards)
    return [
        rule
        for rule in (gate.rules if gate is not None else ())
        if rule.quantity == "pass_rate"
        and rule.cohort is None
        and rule.metric is not None
        and spellings.get(rule.metric) == task.metric
    ]


def _settle(run: OpenedRun, task: LabelTask, rate: _PeopleRate, rule: Rule) -> dict[str, Any]:
    value = rate.value or 0.0
    ends = rate.interval
    known = "" if ends is None else f" [{ends.lower:.3f}, {ends.upper:.3f}]"
    so_far = f"People's pass-rate is {value:.3f}{known} by {plural(rate.n, 'label')}{rate.helper}"
    entry = {
        "what": f"whether people's pass-rate of {task.title} reaches {rule.bound:g} (`{rule.name}`)",
        "metric": task.metric,
        "have": rate.n,
    }
    samples = run.row.samples * run.row.repetitions
    if rate.n >= samples:
        return {**entry, "more": 0, "because": f"{so_far}, and these are all outputs."}
    if ends is not None and not ends.lower <= rule.bound <= ends.upper:
        side = "above" if value > rule.bound else "below"
        return {**entry, "more": 0, "because": f"{so_far}: {side} the bound at 95 %."}
    apart = abs(value - rule.bound)
    size = label_size(max(apart, _NEAREST), correlation=rate.correlation, sd=rate.sd, samples=samples)
    # A plan rests on the normal law; while the interval holds the bound, at least one more label is needed.
    more = min(max(1, size.value - rate.n), samples - rate.n)
    because = f"{so_far}, and labels drawn at random tell it from {rule.bound:g} once the interval is ± {apart:.3f}."
    return {**entry, "more": more, "because": because}


def _narrow(run: OpenedRun, task: LabelTask, rate: _PeopleRate) -> dict[str, Any]:
    size = label_size(_HALF_WIDTH, correlation=rate.correlation, sd=rate.sd, samples=run.row.samples)
    because = f"{plural(size.value, 'label')} drawn at random give the pass-rate ± {_HALF_WIDTH} at 95 %{rate.helper}."
    return {
        "what": f"the pass-rate of {task.title} as people see it",
        "metric": task.metric,
        "have": rate.n,
        "more": max(0, size.value - rate.n),
        "because": because,
    }
