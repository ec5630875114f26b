"""How many more labels decide something: a rule of the gate, or what people think of a metric to a useful precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.errors import plural
from deemster.results import cohort_label
from deemster.results.gate_rules import EVERY, Gate, Rule
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.runs.metric_catalog import card_spellings
from deemster.runs.people_labels import LabelTask
from deemster.stats import ConfidenceInterval, ppi_mean, wilson
from deemster.stats.power_analysis import label_size
from deemster.store import LabelFacts
from deemster.view.run_cache import OpenedRun

# The half-width of the interval that labels are counted for where no rule waits for them.
_HALF_WIDTH = 0.05
# With fewer labels than this, nothing is said of how the judge follows people.
_FEW = 10
# A rate that lies on a bound is told from it by no number of labels but all.
_NEAREST = 1e-6
# The position and repetition of an output.
_Key: TypeAlias = tuple[int, int]


class _Opinions:
    """What people said of one question about outputs that were drawn at random: only these speak for the others.

    Attributes:
        task: The question.
        values: For each output what people's answer is worth: the majority of yes or no, the mean of anything finer.
        chances: How probable it was that each of them is drawn.
        left_out: How many outputs have labels only because they were disputed or uncertain.
    """

    def __init__(self, task: LabelTask, labels: Sequence[LabelFacts]) -> None:
        self.task = task
        said: dict[_Key, list[float]] = {}
        self.chances: dict[_Key, float] = {}
        aside: set[_Key] = set()
        for label in labels:
            worth = None if label.verdict is None else task.worth(label.verdict)
            key = label.position, label.repetition
            if worth is None:
                continue
            if label.order != "random":
                aside.add(key)
                continue
            said.setdefault(key, []).append(worth)
            self.chances[key] = max(self.chances.get(key, 0.0), label.probability or 1.0)
        is_binary = task.definition is None or task.definition.kind == "binary"
        self.values = {key: _joint(worths, is_binary=is_binary) for key, worths in said.items()}
        self.left_out = len(aside - set(said))


def _joint(worths: Sequence[float], *, is_binary: bool) -> float:
    mean = sum(worths) / len(worths)
    return float(mean >= 0.5) if is_binary else mean


class _Subject(NamedTuple):
    """A number that people's labels tell.

    Attributes:
        what: What it is called.
        values: What people say of labelled outputs, in [0, 1].
        chances: How probable it was that each of them is drawn.
        left_out: How many labelled outputs do not count.
        judge: What the judge says of every output, NaN for nothing; samples by repetitions.
        inside: The outputs that the number is about.
    """

    what: str
    values: Mapping[_Key, float]
    chances: Mapping[_Key, float]
    left_out: int
    judge: NDArray[np.float64]
    inside: NDArray[np.bool_]

    def within(self, label: str, positions: NDArray[np.integer[Any]]) -> _Subject:
        """The same number of one cohort."""
        inside = np.zeros_like(self.inside)
        inside[positions] = self.inside[positions]
        return self._replace(what=f"{self.what} in the cohort {label}", inside=inside)


class _PeopleMean:
    """A number as people see it, with the judge's help where there are labels enough.

    Attributes:
        n: How many outputs are labelled.
        value: The number; None without labels.
        interval: Its interval at 95 %; None where it has none.
        correlation: Of the judge's answers with people's; 0 where too few are labelled.
        sd: The standard deviation of people's answers: never 0, since all alike so far does not mean all alike.
        samples: How many samples there are in all.
        open: How many of them have no label.
    """

    def __init__(self, subject: _Subject) -> None:
        keys = [key for key in subject.values if subject.inside[key]]
        truth = np.array([subject.values[key] for key in keys])
        judged = np.array([subject.judge[key] for key in keys])
        chances = np.array([subject.chances[key] for key in keys])
        self.n, self.samples = len(keys), int(subject.inside.any(axis=1).sum())
        self.open = self.samples - len({position for position, _ in keys})
        # As if two more were best and two worst.
        self.sd = float(np.std([*truth, 0.0, 0.0, 1.0, 1.0]))
        self.correlation = 0.0
        self.value: float | None = None
        self.interval: ConfidenceInterval | None = None
        if not keys:
            return
        weights = None if chances.min() == chances.max() else 1 / chances
        if weights is None and np.isin(truth, (0.0, 1.0)).all():
            alone = wilson(int(truth.sum()), self.n)
            self.value, self.interval = alone.value, alone.interval
        else:
            plain = ppi_mean(truth, np.zeros(self.n), (), weights=weights, bounds=(0.0, 1.0))
            self.value, self.interval = plain.value, plain.interval
        known = ~np.isnan(judged)
        if known.sum() < _FEW or truth[known].std() == 0 or judged[known].std() == 0:
            return
        self.correlation = max(0.0, float(np.corrcoef(truth[known], judged[known])[0, 1]))
        others = subject.inside & ~np.isnan(subject.judge)
        if weights is None:
            others[tuple(np.array(keys).T)] = False
        if self.correlation and others.any():
            shares = None if weights is None else weights[known]
            helped = ppi_mean(truth[known], judged[known], subject.judge[others], weights=shares, bounds=(0.0, 1.0))
            self.value, self.interval = helped.value, helped.interval

    @property
    def helper(self) -> str:
        """What is said of the judge's help."""
        return "" if not self.correlation else f", with the help of the judge (correlation {self.correlation:.2f})"


def needed_labels(run: OpenedRun, tasks: Sequence[LabelTask], labels: Sequence[LabelFacts]) -> list[dict[str, Any]]:
    """How many more labels settle each rule of the run's gate that they can settle.

    A rule is settled once the interval of the number that people see leaves the bound out. Where no rule is about a
    question, labels are counted for an interval of a useful width.

    Args:
        run: The run.
        tasks: The questions that somebody answered.
        labels: What people said.

    Raises:
        StoreError: The store fails.
    """
    opinions = {
        task.key: _Opinions(task, [label for label in labels if (label.metric, label.criterion) == task.key])
        for task in tasks
    }
    gate = msgspec.convert(run.row.facts.get("gate"), Gate | None) or Gate()
    found, spoken = [], set()
    for rule in gate.rules:
        key = _rule_key(run, rule)
        if key is None or (rule.metric is not None and key not in opinions):
            continue
        entries = list(_settle_rule(run, gate, rule, opinions, key))
        if entries:
            found.append(max(entries, key=lambda entry: entry["more"] or 0))
            spoken.add(key)
    open_ones = [each for key, each in opinions.items() if key not in spoken]
    return found + [_narrow(_subject(run, each)) for each in open_ones]


def _rule_key(run: OpenedRun, rule: Rule) -> tuple[str, str] | None:
    """The metric and criterion that a rule is about, both empty for the run; None where labels say nothing of it."""
    if rule.metric is None:
        return ("", "") if rule.quantity in ("pass_rate", "macro_f1") else None
    if rule.quantity not in ("pass_rate", "mean"):
        return None
    spellings = card_spellings(run.cards)
    if rule.metric in spellings:
        return spellings[rule.metric], ""
    found = ((name, f"{text}/") for text, name in spellings.items())
    return next(((name, rule.metric.removeprefix(head)) for name, head in found if rule.metric.startswith(head)), None)


def _settle_rule(
    run: OpenedRun,
    gate: Gate,
    rule: Rule,
    opinions: Mapping[tuple[str, str], _Opinions],
    key: tuple[str, str],
) -> Iterator[dict[str, Any]]:
    """What decides a rule: of one for every cohort an entry a cohort."""
    if rule.metric is None:
        whole = [each for each in opinions.values() if not each.task.criterion]
        if not whole or run.row.kind == "grading":
            return
        subject = _run_subject(run, whole, rule.quantity)
    elif rule.quantity == "mean" and not key[1] and not _is_pass_or_fail(run, key[0]):
        because = f"Labels say pass or fail, which is no mean score, so none decides `{rule.name}`."
        have = len(opinions[key].values)
        yield {"what": f"the mean of {key[0]}", "metric": key[0], "have": have, "more": None, "because": because}
        return
    else:
        subject = _subject(run, opinions[key])
    if rule.cohort is None:
        yield _settle(subject, rule)
        return
    own = {other.cohort for other in gate.rules if (other.quantity, other.metric) == (rule.quantity, rule.metric)}
    for tag, positions in run.table.cohorts:
        label = cohort_label(tag)
        least, _ = gate.min_samples.get(label, gate.min_samples.get(EVERY, (0, "")))
        if (rule.cohort == label or (rule.cohort == EVERY and label not in own)) and len(positions) >= least:
            yield _settle(subject.within(label, positions), rule)


def _is_pass_or_fail(run: OpenedRun, metric: str) -> bool:
    """Whether the scores of a metric are 1 where it passes and 0 where it does not, so that their mean is a rate."""
    place = run.names.index(metric)
    scored = run.table.causes[:, :, place] == SCORED
    return bool((run.table.scores[:, :, place][scored] == run.table.passed[:, :, place][scored]).all())


def _subject(run: OpenedRun, opinions: _Opinions) -> _Subject:
    """What people think of one metric or criterion."""
    task, table = opinions.task, run.table
    place = run.names.index(task.metric or task.criterion)
    causes = table.causes[:, :, place]
    values = table.scores[:, :, place] if task.criterion else table.passed[:, :, place]
    judge = np.where(causes == SCORED, values, np.nan)
    if task.metric and task.criterion:
        # The columns of a run hold the scores of its metrics, not those of their criteria.
        judge = np.full(causes.shape, np.nan)
    noun = "pass-rate" if task.definition is None else "share met" if task.definition.kind == "binary" else "mean value"
    what = f"people's {noun} of {task.title}"
    return _Subject(what, opinions.values, opinions.chances, opinions.left_out, judge, causes != OUTSIDE)


def _run_subject(run: OpenedRun, opinions: Sequence[_Opinions], quantity: str) -> _Subject:
    """What people think of whole outputs; a metric that nobody labels is believed.

    An output counts where every labelled metric that applies to it has its label.
    """
    table = run.table
    applies = table.causes != OUTSIDE
    passed = table.passed & applies
    labelled = {run.names.index(each.task.metric): each for each in opinions}
    values: dict[_Key, float] = {}
    for key in {key for each in opinions for key in each.values}:
        answers = {place: each.values.get(key) for place, each in labelled.items() if applies[(*key, place)]}
        others = [float(passed[(*key, at)]) for at in np.flatnonzero(applies[key]) if at not in answers]
        given = [*others, *(answer for answer in answers.values() if answer is not None)]
        if given and None not in answers.values():
            values[key] = min(given) if quantity == "pass_rate" else sum(given) / len(given)
    chances = {key: max(each.chances.get(key, 0.0) for each in opinions) for key in values}
    counts = applies.sum(axis=2)
    shares = passed.sum(axis=2) / np.maximum(counts, 1)
    judge = (shares == 1).astype(np.float64) if quantity == "pass_rate" else shares
    what = f"people's {'pass-rate' if quantity == 'pass_rate' else 'macro-F1'} of the run"
    return _Subject(what, values, chances, max(each.left_out for each in opinions), judge, counts > 0)


def _entry(subject: _Subject, mean: _PeopleMean) -> dict[str, Any]:
    return {"what": subject.what, "have": mean.n, "more": 0}


def _not_counted(subject: _Subject) -> str:
    """What is said of labels that were not drawn at random."""
    if not subject.left_out:
        return ""
    do = "does" if subject.left_out == 1 else "do"
    return f" {plural(subject.left_out, 'output')} with labels {do} not count: not drawn at random."


def _settle(subject: _Subject, rule: Rule) -> dict[str, Any]:
    mean, unfit = _PeopleMean(subject), _not_counted(subject)
    reached = "stays at or below" if rule.upper else "reaches"
    entry = {**_entry(subject, mean), "what": f"whether {subject.what} {reached} {rule.bound:g} (`{rule.name}`)"}
    if mean.value is None:
        return {**_narrow(subject), "what": entry["what"]}
    ends = mean.interval
    known = "" if ends is None else f" [{ends.lower:.3f}, {ends.upper:.3f}]"
    so_far = f"It is {mean.value:.3f}{known} by {plural(mean.n, 'label')}{mean.helper}"
    if not mean.open:
        return {**entry, "because": f"{so_far}, and every sample has a label.{unfit}"}
    if ends is not None and not ends.lower <= rule.bound <= ends.upper:
        side = "above" if mean.value > rule.bound else "below"
        return {**entry, "because": f"{so_far}: {side} the bound at 95 %.{unfit}"}
    apart = abs(mean.value - rule.bound)
    size = label_size(max(apart, _NEAREST), correlation=mean.correlation, sd=mean.sd, samples=mean.samples)
    # A plan rests on the normal law; while the interval holds the bound, at least one more label is needed.
    more = min(max(1, size.value - mean.n), mean.open)
    because = f"{so_far}, and labels drawn at random tell it from {rule.bound:g} once the interval is ± {apart:.3f}."
    return {**entry, "more": more, "because": because + unfit}


def _narrow(subject: _Subject) -> dict[str, Any]:
    """The labels that give a number to a useful precision."""
    mean = _PeopleMean(subject)
    size = label_size(_HALF_WIDTH, correlation=mean.correlation, sd=mean.sd, samples=mean.samples)
    goal = min(size.value, mean.samples)
    because = f"{plural(goal, 'label')} drawn at random give it ± {_HALF_WIDTH} at 95 %{mean.helper}."
    return {
        **_entry(subject, mean),
        "more": min(max(0, goal - mean.n), mean.open),
        "because": because + _not_counted(subject),
    }
