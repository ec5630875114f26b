"""How far people agree who answered one question in the viewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from deemster.agreement import BootstrapSettings
from deemster.agreement.annotator_alpha import annotator_alpha
from deemster.stats import cohen_kappa
from deemster.stats.confidence_interval import interval_ends
from deemster.store import LabelFacts

# What a person answered, by the position and the repetition of an output.
_Answers: TypeAlias = Mapping[tuple[int, int], str]


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far people agree on one question: Cohen's kappa of two, Krippendorff's alpha of more.

    Attributes:
        n: How many samples two of them or more answered.
        value: The statistic; None where it is undefined.
        interval: Its interval at 95 %.
        statistic: Which it is: `kappa` or `alpha`; None without such a sample.
        because: Why it is undefined.
    """

    n: int
    value: float | None = None
    interval: tuple[float, float] | None = None
    statistic: str | None = None
    because: str | None = None


def label_agreement(labels: Iterable[LabelFacts]) -> LabelAgreement:
    """How far people agree on one question.

    Samples that were picked say nothing of the others, least of all those on which people differ; only those that were
    drawn at random count.

    Args:
        labels: What people answered to this question.
    """
    answers_by_author: dict[str, dict[tuple[int, int], str]] = {}
    for label in labels:
        if label.verdict is not None and label.order == "random":
            answers = answers_by_author.setdefault(label.author, {})
            answers[label.position, label.repetition] = label.verdict

    outputs = _shared_outputs(answers_by_author.values())
    if not outputs:
        because = "No sample that was drawn at random was labelled by two people."
        return LabelAgreement(n=0, because=because)

    rows = [[answers.get(output) for output in outputs] for _, answers in sorted(answers_by_author.items())]
    return _kappa(rows) if len(rows) == 2 else _alpha(rows)


def _shared_outputs(answers: Iterable[_Answers]) -> list[tuple[int, int]]:
    """The outputs on which people are compared: the first repetition of each sample that two of them answered.

    Repetitions of a sample are alike, so that more of them would count one sample several times.
    """
    n_people = Counter(output for author in answers for output in author)
    repetitions: dict[int, int] = {}
    for (position, repetition), n in sorted(n_people.items()):
        if n > 1:
            repetitions.setdefault(position, repetition)
    return list(repetitions.items())


def _kappa(rows: Sequence[Sequence[str | None]]) -> LabelAgreement:
    kappa = cohen_kappa(*rows)
    because = "Both gave one same answer throughout, so kappa is undefined."
    return LabelAgreement(
        n=len(rows[0]),
        value=kappa.value,
        interval=interval_ends(kappa.interval),
        statistic="kappa",
        because=because if kappa.value is None else None,
    )


def _alpha(rows: Sequence[Sequence[str | None]]) -> LabelAgreement:
    n = len(rows[0])
    alpha = annotator_alpha(rows, replicates=BootstrapSettings().replicates, seed=0)
    reason = "Only one sample was labelled by two people" if n == 1 else "All gave one same answer throughout"
    return LabelAgreement(
        n=n,
        value=alpha.estimate,
        interval=interval_ends(alpha.ci),
        statistic="alpha",
        because=f"{reason}, so alpha is undefined." if alpha.estimate is None else None,
    )
