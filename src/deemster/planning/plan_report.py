"""Plans as results: what samples can show, and how many samples or labels a question needs."""

from __future__ import annotations

import msgspec

from deemster.errors import plural
from deemster.planning.sample_plans import EVERY_METRIC, Detection, Noise, SamplePlan
from deemster.stats.power_analysis import LabelSize
from deemster.text.rendered import Rendered
from deemster.text.text_sections import DataText, MetricName, TextLine, TextSection, TextTable

# So many ways to split calls between samples and repetitions are listed.
_LISTED_SPLITS = 5


class DetectionPlan(Rendered, msgspec.Struct, frozen=True, kw_only=True):
    """What samples can show.

    Attributes:
        confidence: The level of intervals and one-sided bounds.
        power: The chance of an answer.
        detect: What all samples can show, and each cohort.
    """

    confidence: float
    power: float
    detect: tuple[Detection, ...]

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
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
        for row in self.detect:
            name = row.metric if row.metric == EVERY_METRIC else MetricName(row.metric)
            cohort = "all" if row.cohort is None else DataText(row.cohort)
            numbers = (row.certifiable, row.margin, row.drop, row.drop_unpaired)
            rows.append((name, cohort, f"{row.n:,}", *(_share(number) for number in numbers)))

        often = _often(self.power)
        lines: list[TextLine] = [(_describe_noise(self.detect[0].noise, several=len(self.detect) > 1),)]
        after: list[TextLine] = [
            (f"Certifies: the smallest `margin` of a gate that passes {often}, if nothing is worse.",),
            (f"Shows: the smallest drop whose interval lies wholly below 0 {often}.",),
            ("Unpaired: the same for two runs on different samples.",),
        ]
        return [TextSection(("What these samples can show",), lines, TextTable(head, rows, ("unpaired",)), after)]


class SizePlan(Rendered, msgspec.Struct, frozen=True, kw_only=True):
    """How many samples a question needs.

    Attributes:
        confidence: The level of intervals and one-sided bounds.
        power: The chance of an answer.
        size: How many samples.
    """

    confidence: float
    power: float
    size: SamplePlan

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        plan, often = self.size, _often(self.power)
        effect = f"{plan.effect:g}"
        rows = [
            (f"show a drop of {effect} {often}", _count(plan.detect)),
            ("the same with two runs on different samples, each", _count(plan.detect_unpaired)),
            (f"certify a margin of {effect} {often}, if nothing is worse", _count(plan.certify)),
            (f"certify a margin of {effect} if nothing flips", _count(plan.certify_unchanged)),
        ]
        noise = (_describe_noise(plan.noise, several=False),)
        needed = TextSection(("Samples needed",), [noise], TextTable(("to", "samples"), rows))
        return [needed, *_splits(plan)]


class LabelPlan(Rendered, msgspec.Struct, frozen=True, kw_only=True):
    """How many labels of people a question needs.

    Attributes:
        confidence: The level of the interval.
        labels: How many labels.
    """

    confidence: float
    labels: LabelSize

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        size = self.labels
        rows = [
            (f"with a judge whose correlation with people is {size.correlation:g}", f"{size.value:,}"),
            ("with labels alone", f"{size.alone:,}"),
        ]
        samples = "any number of samples" if size.samples is None else plural(size.samples, "sample")
        line = f"For a {self.confidence:.0%} interval of ±{size.half_width:g}; the judge scores {samples}."
        return [TextSection(("Human labels needed",), [(line,)], TextTable(("how", "labels"), rows))]


def _splits(plan: SamplePlan) -> list[TextSection]:
    if not plan.splits:
        return []
    rows = [
        (f"{split.repetitions:,}", f"{split.samples:,}", f"{split.cost:,.0f}") for split in plan.splits[:_LISTED_SPLITS]
    ]
    noise = f"The scores of one sample have the variance {plan.noise.within:.4f}. "
    rest = f"The true differences of samples have {plan.noise.between:.4f}, which repetitions cannot reduce."
    table = TextTable(("repetitions", "samples", "cost in calls"), rows)
    return [TextSection(("Samples or repetitions, cheapest first",), [(noise, rest)], table)]


def _describe_noise(noise: Noise, *, several: bool) -> str:
    own = "each row's own " if several and noise.source != "stated" else ""
    amount = f"{noise.flip_rate:.1%} of samples flip" if noise.flip_rate is not None else f"a spread of {noise.sd:.4f}"
    first = " in the first row" if own else ""
    words = {
        "stated": f"Stated or guessed: from run to run, {amount} without any true difference.",
        "two runs": f"Measured on two runs: {own}differences; {amount}{first}.",
        "repetitions": f"Measured on repetitions: {own}noise of the system itself; {amount}{first}.",
        "one run": f"Guessed from {own or 'the '}spread of scores, as if two runs correlated by 0.5: {amount}{first}.",
    }
    if noise.cluster_size == 1:
        return words[noise.source]
    alike = f"whose differences have an intraclass correlation of {noise.icc:.2f}"
    return f"{words[noise.source]} Clusters have {noise.cluster_size:.1f} samples, {alike}{first}."


def _often(power: float) -> str:
    return f"in {power:.0%} of comparisons"


def _share(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return "more than 10 million" if value is None else f"{value:,}"
