"""How many more labels tell what people think of a metric or criterion, by the plan of `deemster plan labels`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from deemster.agreement.estimate import state_equal_labels
from deemster.calibration.people_labels import LabelTask
from deemster.errors import plural
from deemster.gate.read_gate import GateRules, Rule
from deemster.judges.metric_catalog import card_spellings
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.stats import ConfidenceInterval, ppi_mean, wilson
from deemster.stats.power_analysis import label_size
from deemster.stats.unequal_sampling import equal_sample_size
from deemster.store import LabelFacts
from deemster.view.opened_run import OpenedRun, row_means

# The half-width of the interval that labels are counted for where no rule waits for them.
_HALF_WIDTH = 0.05
# With fewer labels than this, nothing is said of how the judge follows people.
_FEW = 10
# A rate that lies on a bound is told from it by no number of labels but all.
_NEAREST = 1e-6
# The position and repetition of an output.
_Key: TypeAlias = tuple[int, int]


def needed_labels(run: OpenedRun, tasks: Sequence[LabelTask], labels: Sequence[LabelFacts]) -> list[dict[str, Any]]:
    """How many more labels each question needs.

    A rule of the gate about the question is settled once the interval of the number that people see leaves its bound
    out. Where no rule is about it, labels are counted for an interval of a useful width.

    Args:
        run: The run.
        tasks: The questions that somebody answered.
        labels: What people said.
    """
    gate = msgspec.convert(run.row.facts.get("gate"), GateRules | None) or GateRules()
    rules = {key: rule for rule in gate.rules if (key := _question_of(run, rule)) is not None}

    needs = []
    for task in tasks:
        opinion = _Opinion(run, task, [label for label in labels if (label.metric, label.criterion) == task.key])
        rule = rules.get(task.key)
        needs.append(opinion.narrow() if rule is None or opinion.value is None else opinion.settle(rule))
    return needs


def _question_of(run: OpenedRun, rule: Rule) -> tuple[str, str] | None:
    """The metric and criterion whose rate a rule is about; None where labels say nothing of it."""
    if rule.metric is None or rule.cohort is not None or rule.quantity not in ("pass_rate", "mean"):
        return None

    for spelling, name in card_spellings(run.cards).items():
        if rule.metric == spelling:
            is_rate = rule.quantity == "pass_rate" or _is_pass_or_fail(run, name)
            return (name, "") if is_rate else None
        if rule.metric.startswith(f"{spelling}/"):
            return name, rule.metric.removeprefix(f"{spelling}/")
    return None


def _is_pass_or_fail(run: OpenedRun, metric: str) -> bool:
    """Whether the scores of a metric are 1 where it passes and 0 where it does not, so that their mean is a rate."""
    column = run.names.index(metric)
    scored = run.table.causes[:, :, column] == SCORED
    return bool((run.table.scores[:, :, column][scored] == run.table.passed[:, :, column][scored]).all())


class _Opinion:
    """What people think of one metric or criterion, with the judge's help where there are labels enough.

    Only labels of outputs that were drawn at random speak for the others.

    Attributes:
        what: What the number is called.
        n: How many samples are labelled.
        left_out: How many outputs have labels only because they were disputed or uncertain.
        value: The number; None without labels.
        interval: Its interval at 95 %; None where it has none.
        equal_labels: How many labels drawn with equal probabilities would be as precise; None where they were drawn so.
        correlation: Of the judge's answers with people's; 0 where too few are labelled.
        sd: The standard deviation of people's answers: never 0, since all alike so far does not mean all alike.
        samples: How many samples there are in all.
        open: How many of them have no label.
    """

    def __init__(self, run: OpenedRun, task: LabelTask, labels: Sequence[LabelFacts]) -> None:
        self._read_labels(task, labels)
        noun = "mean value"
        if task.definition is None:
            noun = "pass-rate"
        elif task.definition.kind == "binary":
            noun = "share met"
        self.what = f"people's {noun} of {task.title}"

        column = run.names.index(task.metric or task.criterion)
        causes = run.table.causes[:, :, column]
        values = run.table.scores[:, :, column] if task.criterion else run.table.passed[:, :, column]
        self._applies = causes != OUTSIDE
        self._judge = np.where(causes == SCORED, values, np.nan)
        if task.metric and task.criterion:
            # The columns of a run hold the scores of its metrics, not those of their criteria.
            self._judge = np.full(causes.shape, np.nan)

        by_sample: dict[int, list[_Key]] = {}
        for key in self._worths:
            if self._applies[key]:
                by_sample.setdefault(key[0], []).append(key)
        self.n = len(by_sample)
        self.samples = int(self._applies.any(axis=1).sum())
        self.open = self.samples - self.n
        self._estimate(by_sample)

    def _read_labels(self, task: LabelTask, labels: Sequence[LabelFacts]) -> None:
        """Collect what the answers about each output are worth, and how probable it was that it is drawn."""
        answers: dict[_Key, list[float]] = {}
        self._chances: dict[_Key, float] = {}
        chosen: set[_Key] = set()
        for label in labels:
            worth = None if label.verdict is None else task.worth(label.verdict)
            key = label.position, label.repetition
            if worth is None:
                continue
            if not label.is_drawn:
                chosen.add(key)
                continue
            answers.setdefault(key, []).append(worth)
            self._chances[key] = max(self._chances.get(key, 0.0), label.probability or 1.0)

        self._worths = {key: sum(worths) / len(worths) for key, worths in answers.items()}
        if task.definition is None or task.definition.kind == "binary":
            self._worths = {key: float(mean >= 0.5) for key, mean in self._worths.items()}
        self.left_out = len(chosen - set(answers))

    def _estimate(self, by_sample: Mapping[int, Sequence[_Key]]) -> None:
        """Estimate the number; repetitions of a sample are one unit."""
        truth = np.array([np.mean([self._worths[key] for key in keys]) for keys in by_sample.values()])
        judged = np.array([np.mean([self._judge[key] for key in keys]) for keys in by_sample.values()])
        chances = np.array([self._chances[keys[0]] for keys in by_sample.values()])
        # As if two more were best and two worst.
        self.sd = float(np.std([*truth, 0.0, 0.0, 1.0, 1.0]))
        self.correlation = 0.0
        self.equal_labels: float | None = None
        self.value: float | None = None
        self.interval: ConfidenceInterval | None = None
        if not by_sample:
            return

        weights = None if chances.min() == chances.max() else 1 / chances
        if weights is None and np.isin(truth, (0.0, 1.0)).all():
            alone = wilson(int(truth.sum()), self.n)
            self.value, self.interval = alone.value, alone.interval
        else:
            plain = ppi_mean(truth, np.zeros(self.n), (), weights=weights, bounds=(0.0, 1.0))
            self.value, self.interval = plain.value, plain.interval
            self.equal_labels = None if weights is None else equal_sample_size(truth, weights)

        known = ~np.isnan(judged)
        if known.sum() < _FEW or truth[known].std() == 0 or judged[known].std() == 0:
            return
        self.correlation = max(0.0, float(np.corrcoef(truth[known], judged[known])[0, 1]))
        means = row_means(self._judge)
        others = np.asarray(~np.isnan(means))
        if weights is None:
            others[list(by_sample)] = False
        if self.correlation and others.any():
            shares = None if weights is None else weights[known]
            helped = ppi_mean(truth[known], judged[known], means[others], weights=shares, bounds=(0.0, 1.0))
            self.value, self.interval = helped.value, helped.interval
            if shares is not None:
                self.equal_labels = equal_sample_size(truth[known] - (helped.lam or 0.0) * judged[known], shares)

    def narrow(self) -> dict[str, Any]:
        """The labels that give the number to a useful precision."""
        goal = min(self._labels_for(_HALF_WIDTH), self.samples)
        because = f"{plural(goal, 'label')} drawn at random give it ± {_HALF_WIDTH} at 95 %{self._help}."
        return self._entry(self.what, because, more=self._more(goal))

    def settle(self, rule: Rule) -> dict[str, Any]:
        """The labels that settle a rule of the gate."""
        reached = "stays at or below" if rule.upper else "reaches"
        what = f"whether {self.what} {reached} {rule.bound:g} (`{rule.name}`)"
        ends, value = self.interval, self.value or 0.0
        known = "" if ends is None else f" [{ends.lower:.3f}, {ends.upper:.3f}]"
        so_far = f"It is {value:.3f}{known} by {plural(self.n, 'label')}{self._help}"
        if not self.open:
            return self._entry(what, f"{so_far}, and every sample has a label.")
        if ends is not None and not ends.lower <= rule.bound <= ends.upper:
            side = "above" if value > rule.bound else "below"
            return self._entry(what, f"{so_far}: {side} the bound at 95 %.")

        apart = abs(value - rule.bound)
        because = (
            f"{so_far}, and labels drawn at random tell it from {rule.bound:g} once the interval is ± {apart:.3f}."
        )
        # A plan rests on the normal law; while the interval holds the bound, at least one more label is needed.
        more = min(max(1, self._more(self._labels_for(max(apart, _NEAREST)))), self.open)
        return self._entry(what, because, more=more)

    def _more(self, goal: int) -> int:
        """How many more labels make the given ones worth so many at random, if they are drawn as these were."""
        needed = goal if self.equal_labels is None else math.ceil(goal * self.n / self.equal_labels)
        return min(max(0, needed - self.n), self.open)

    def _labels_for(self, half_width: float) -> int:
        return label_size(half_width, correlation=self.correlation, sd=self.sd, samples=self.samples).value

    @property
    def _help(self) -> str:
        return f", with the help of the judge (correlation {self.correlation:.2f})" if self.correlation else ""

    def _entry(self, what: str, because: str, *, more: int = 0) -> dict[str, Any]:
        if self.equal_labels is not None:
            because += f" {plural(self.n, 'label')}; {state_equal_labels(self.equal_labels)}."
        if self.left_out:
            do = "does" if self.left_out == 1 else "do"
            because += f" {plural(self.left_out, 'output')} with labels {do} not count: not drawn at random."
        return {"what": what, "have": self.n, "more": more, "because": because}
