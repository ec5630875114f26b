"""Plans as text: what samples can show, and how many samples or labels a question needs."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.errors import plural
from deemster.report.sample_plans import EVERY_METRIC, Detection, Goal, Noise, SamplePlan
from deemster.stats.power_analysis import LabelSize
from deemster.text.text_sections import DataText, MetricName, TextLine, TextSection, TextTable

# So many ways to split calls between samples and repetitions are listed.
_LISTED_SPLITS = 5


def detection_sections(found: Sequence[Detection], *, goal: Goal) -> list[TextSection]:
    """What samples can show, for people."""
    head = (
        "metric",
        "cohort",
        "samples",
        "certifies if nothing flips",
        "certifies",
        "shows a drop of",
        "unpaired",
    )
    rows: list[TextLine] = []
    for row in found:
        name = row.metric if row.metric == EVERY_METRIC else MetricName(row.metric)
        cohort = "all" if row.cohort is None else DataText(row.cohort)
        numbers = (row.certifiable, row.margin, row.drop, row.drop_unpaired)
        rows.append((name, cohort, f"{row.n:,}", *(_share(number) for number in numbers)))
    lines: list[TextLine] = [(_describe_noise(found[0].noise, several=len(found) > 1),)]
    often = _often(goal)
    after: list[TextLine] = [
        (f"Certifies: the smallest `margin` of a gate that passes {often}, if nothing is worse.",),
        (f"Shows: the smallest drop whose interval lies wholly below 0 {often}.",),
        ("Unpaired: the same for two runs on different samples.",),
    ]
    return [TextSection(("What these samples can show",), lines, TextTable(head, rows, ("unpaired",)), after)]


def size_sections(plan: SamplePlan, *, goal: Goal) -> list[TextSection]:
    """How many samples a question needs, for people."""
    effect = f"{plan.effect:g}"
    rows = [
        (f"show a drop of {effect} {_often(goal)}", _count(plan.detect)),
        ("the same with two runs on different samples, each", _count(plan.detect_unpaired)),
        (f"certify a margin of {effect} {_often(goal)}, if nothing is worse", _count(plan.certify)),
        (f"certify a margin of {effect} if nothing flips", _count(plan.certify_unchanged)),
    ]
    sections = [
        TextSection(
            ("Samples needed",),
            [(_describe_noise(plan.noise, several=False),)],
            TextTable(("to", "samples"), rows),
        )
    ]
    if plan.splits:
        table = [
            (f"{split.repetitions:,}", f"{split.samples:,}", f"{split.cost:,.0f}")
            for split in plan.splits[:_LISTED_SPLITS]
        ]
        noise = f"The marks of one sample have the variance {plan.noise.within:.4f}. "
        rest = f"The true differences of samples have {plan.noise.between:.4f}, which repetitions cannot reduce."
        head = ("repetitions", "samples", "cost in calls")
        sections.append(
            TextSection(("Samples or repetitions, cheapest first",), [(noise, rest)], TextTable(head, table))
        )
    return sections


def label_sections(size: LabelSize, *, confidence: float) -> list[TextSection]:
    """How many labels a question needs, for people."""
    rows = [
        (f"with a judge whose correlation with people is {size.correlation:g}", f"{size.value:,}"),
        ("with labels alone", f"{size.alone:,}"),
    ]
    samples = "any number of samples" if size.samples is None else plural(size.samples, "sample")
    line = f"For a {confidence:.0%} interval of ±{size.half_width:g}; the judge scores {samples}."
    return [TextSection(("Human labels needed",), [(line,)], TextTable(("how", "labels"), rows))]


def _describe_noise(noise: Noise, *, several: bool) -> str:
    own = "each row's own " if several and noise.source != "stated" else ""
    amount = f"{noise.flip_rate:.1%} of samples flip" if noise.flip_rate is not None else f"a spread of {noise.sd:.4f}"
    first = " in the first row" if own else ""
    words = {
        "stated": f"Stated or guessed: from run to run, {amount} without any true difference.",
        "two runs": f"Measured on two runs: {own}differences; {amount}{first}.",
        "repetitions": f"Measured on repetitions: {own}noise of the system itself; {amount}{first}.",
        "one run": f"Guessed from {own or 'the '}spread of marks, as if two runs correlated by 0.5: {amount}{first}.",
    }
    if noise.cluster_size == 1:
        return words[noise.source]
    alike = f"whose differences have an intraclass correlation of {noise.icc:.2f}"
    return f"{words[noise.source]} Clusters have {noise.cluster_size:.1f} samples, {alike}{first}."


def _often(goal: Goal) -> str:
    return f"in {goal.power:.0%} of comparisons"


def _share(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return "more than 10 million" if value is None else f"{value:,}"
