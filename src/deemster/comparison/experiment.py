"""The answer of an experiment: which variant is best, what its factors do, and what does as well for less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from deemster import __version__
from deemster.comparison._pass_shares import shared_pass_shares
from deemster.comparison.compare_columns import DEFAULT_SETTINGS, ComparisonSettings, compare_pass_rates
from deemster.comparison.experiment_report import experiment_comment, experiment_rows, experiment_sections
from deemster.comparison.ranking import Ranking, rank_columns
from deemster.comparison.ranking_report import csv_lines, pair_of, places_by_rate
from deemster.comparison.run_source import RunSource, with_declared_cluster
from deemster.errors import ReportError, plural
from deemster.formats.dataframe import dataframe
from deemster.gate.gate_decision import Status
from deemster.results.run_columns import RunColumns
from deemster.stats import Interval
from deemster.stats.confidence_interval import interval_ends, shared_confidence
from deemster.stats.factor_effects import FactorContrast, Grid, InteractionContrast, factor_effects
from deemster.stats.paired_difference import PairedDifference
from deemster.text.rendered import Forms, RenderedRecord
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "deemster.experiment.v1"


class VariantSource(NamedTuple):
    """A variant whose run is there.

    Attributes:
        name: What it is called.
        levels: Of a grid, the level of every factor; empty for a variant that has only a name.
        source: Where the facts of its run come from.
    """

    name: str
    levels: Mapping[str, str]
    source: RunSource


class MissingVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variant that has no run to be ranked.

    Attributes:
        name: What it is called.
        levels: Of a grid, the level of every factor.
        reason: Why it has none, half a sentence.
    """

    name: str
    levels: dict[str, str]
    reason: str


class VariantGate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the gate decided of a variant.

    Attributes:
        status: `pass`, `fail`, `inconclusive`, or `skipped` where no rule could be checked.
        checks: The names of the checks that failed, and of those that are inconclusive.
    """

    status: Status
    checks: tuple[str, ...]


class RankedVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variant whose run is ranked: the one at the same place of the ranking.

    Attributes:
        name: What it is called.
        levels: Of a grid, the level of every factor.
        run: The id of its run.
    """

    name: str
    levels: dict[str, str]
    run: str


class LevelContrast(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two levels of a factor, on average over the other factors.

    Attributes:
        first: One level.
        second: The other.
        difference: The second's pass-rate minus the first's; None where no two variants differ in this factor alone.
        interval: Its interval, which holds together with those of all factors.
        better: The level that is better; None where the interval holds 0.
        missing: The combinations of other levels that lack one of the two, so that it is no average over these.
    """

    first: str
    second: str
    difference: float | None
    interval: Interval | None
    better: str | None
    missing: tuple[dict[str, str], ...]


class FactorAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a factor of a grid does.

    Attributes:
        factor: Its name.
        levels: Its levels.
        contrasts: Every two of them.
        depends_on: The factors on which its effect is shown to depend. An average over these says little.
    """

    factor: str
    levels: tuple[str, ...]
    contrasts: tuple[LevelContrast, ...]
    depends_on: tuple[str, ...]


class Interaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The largest difference that the level of one factor makes to the effect of another.

    Attributes:
        factors: Both factors.
        levels: Of the first factor the two levels whose difference is taken, second minus first.
        within: Of the second factor the two levels at which it is taken, at the second minus at the first.
        difference: The difference of the two differences.
        interval: Its interval, which holds together with those of all other interactions.
        is_shown: Whether the interval leaves out 0.
    """

    factors: tuple[str, str]
    levels: tuple[str, str]
    within: tuple[str, str]
    difference: float
    interval: Interval
    is_shown: bool


class CheapestVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cheapest variant that is not shown to be worse than the one with the highest pass-rate.

    Attributes:
        name: The variant.
        cost_per_100: What a hundred of its outputs cost, in dollars.
        highest: The variant with the highest pass-rate, which costs more.
        highest_cost_per_100: What a hundred of its outputs cost.
        margin: The drop that would still be acceptable, and which it is shown not to reach; None where none was given.
    """

    name: str
    cost_per_100: float
    highest: str
    highest_cost_per_100: float
    margin: float | None


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pass-rates of a grid of two factors.

    Attributes:
        row_factor: The factor whose levels are the rows.
        column_factor: The factor whose levels are the columns.
        rows: The levels of the rows.
        columns: The levels of the columns.
        pass_rates: By row and column; None where the variant is missing.
    """

    row_factor: str
    column_factor: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    pass_rates: tuple[tuple[float | None, ...], ...]


class Experiment(RenderedRecord, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variants that ran on the same samples, and what that shows.

    Attributes:
        schema_version: `deemster.experiment.v1`.
        tool_version: The version of this package.
        id: The id of the experiment.
        name: What it is called.
        margin: The drop that would still be acceptable; None where none was given.
        variants: The variants that have a run, in their order.
        missing: Those that have none.
        gates: By a variant's name, what its gate decided; a variant without a gate is left out.
        ranking: The runs of the variants, ranked.
        factors: Of a grid, what each factor does.
        interactions: Of every two factors, by how much they depend on each other at most.
        cheapest: What does as well for less; None where nothing is shown to, or no price is known.
        matrix: Of a grid of two factors, all pass-rates.
    """

    schema_version: str = SCHEMA
    tool_version: str
    id: str
    name: str | None
    margin: float | None
    variants: tuple[RankedVariant, ...]
    missing: tuple[MissingVariant, ...]
    gates: dict[str, VariantGate]
    ranking: Ranking
    factors: tuple[FactorAnswer, ...]
    interactions: tuple[Interaction, ...]
    cheapest: CheapestVariant | None
    matrix: Matrix | None

    @property
    def verdict(self) -> str:
        """Which variant is best, or which may be, in one sentence."""
        return self.ranking.verdict

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return experiment_sections(self)

    def to_dataframe(self) -> pd.DataFrame:
        """The experiment as a pandas table with a row for each variant.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return dataframe(experiment_rows(self), of="An experiment")

    def forms(self) -> Forms:
        """By the name of a format, what makes the bytes of a file."""
        return {
            **super().forms(),
            "csv": lambda: csv_lines(experiment_rows(self)),
            "pr-comment": lambda: (experiment_comment(self).encode(),),
            "github": lambda: (self.to_markdown().encode(),),
        }

    def __repr__(self) -> str:
        return f"<Experiment {self.id} of {plural(len(self.variants), 'variant')}: {self.verdict}>"


def build_experiment(
    sources: Sequence[VariantSource],
    *,
    id: str,  # noqa: A002 - what the field is called
    name: str | None = None,
    missing: Sequence[MissingVariant] = (),
    settings: ComparisonSettings = DEFAULT_SETTINGS,
) -> Experiment:
    """What the runs of an experiment show.

    Args:
        sources: The variants whose runs are there, complete or not, in the order of the suite.
        id: The id of the experiment.
        name: What it is called, such as its suite.
        missing: The variants that have no run.
        settings: How the runs are compared. With a margin, that of the gate of all runs unless given, the cheapest is
            shown to be worse by less than that.

    Raises:
        ReportError: No variant has anything to be compared, or two of them share no sample.
        StoreError: A run cannot be read.
    """
    settings = with_declared_cluster(settings, [variant.source for variant in sources])
    readable, unreadable = _read_columns(sources, settings)
    if not readable:
        raise ReportError(f"No variant of the experiment `{id}` has a score, so there is nothing to rank.")

    margins = {variant.source.margin for variant, _ in readable}
    margin = margins.pop() if settings.margin is None and len(margins) == 1 else settings.margin
    settings = msgspec.structs.replace(settings, margin=None)

    columns = [run for _, run in readable]
    ranking = rank_columns(columns, settings=settings, tool_version=__version__)
    cells = [variant.levels for variant, _ in readable]
    grid = Grid(cells)
    shared = shared_pass_shares(columns)
    effects = factor_effects(shared.shares, cells, clusters=shared.clusters, confidence=settings.confidence)
    interactions = _largest_interactions(effects.interactions)

    return Experiment(
        tool_version=__version__,
        id=id,
        name=name,
        margin=margin,
        variants=tuple(
            RankedVariant(name=variant.name, levels=dict(variant.levels), run=run.run.id) for variant, run in readable
        ),
        missing=(*missing, *unreadable),
        gates=dict(_find_gates(variant for variant, _ in readable)),
        ranking=ranking,
        factors=tuple(_factor_answer(factor, grid, effects.mains, interactions) for factor in grid.varied),
        interactions=interactions,
        cheapest=_find_cheapest(ranking, columns, margin=margin, settings=settings),
        matrix=_matrix(grid, ranking),
    )


def _read_columns(
    sources: Sequence[VariantSource], settings: ComparisonSettings
) -> tuple[list[tuple[VariantSource, RunColumns]], list[MissingVariant]]:
    """The runs that can be compared, named as their variants, and the variants that have nothing to compare."""
    readable = []
    unreadable = []
    for variant in sources:
        try:
            columns = variant.source.columns(cluster=settings.cluster)
        except ReportError as error:
            reason = error.issues[0].message.rstrip(".")
            unreadable.append(MissingVariant(name=variant.name, levels=dict(variant.levels), reason=reason))
        else:
            run = msgspec.structs.replace(columns.run, label=variant.name)
            readable.append((variant, columns._replace(run=run)))
    return readable, unreadable


def _find_gates(variants: Iterable[VariantSource]) -> Iterator[tuple[str, VariantGate]]:
    for variant in variants:
        gate = variant.source.gate
        if gate is None or not gate.checks:
            continue
        open_checks = [
            check.name for status in ("fail", "inconclusive") for check in gate.checks if check.status == status
        ]
        status = gate.decision if gate.is_decided else "skipped"
        yield variant.name, VariantGate(status=status, checks=tuple(open_checks))


def _factor_answer(
    factor: str, grid: Grid, mains: Sequence[FactorContrast], interactions: Sequence[Interaction]
) -> FactorAnswer:
    shown = [interaction.factors for interaction in interactions if interaction.is_shown]
    return FactorAnswer(
        factor=factor,
        levels=tuple(grid.levels[factor]),
        contrasts=tuple(_level_contrast(contrast) for contrast in mains if contrast.factor == factor),
        depends_on=tuple(other for pair in shown if factor in pair for other in pair if other != factor),
    )


def _level_contrast(contrast: FactorContrast) -> LevelContrast:
    paired = contrast.paired
    interval = None if paired is None else interval_ends(paired.interval)
    better = None
    if interval is not None and interval.leaves_out_zero:
        better = contrast.second if interval.low > 0 else contrast.first
    return LevelContrast(
        first=contrast.first,
        second=contrast.second,
        difference=None if paired is None else paired.value,
        interval=interval,
        better=better,
        missing=tuple(dict(levels) for levels in contrast.missing),
    )


def _largest_interactions(contrasts: Sequence[InteractionContrast]) -> tuple[Interaction, ...]:
    """Of every two factors the largest contrast; one that is shown comes before one that is not."""
    largest: dict[tuple[str, str], Interaction] = {}
    for contrast in contrasts:
        interaction = _interaction(contrast, contrast.paired)
        if interaction is None:
            continue
        known = largest.get(contrast.factors)
        if known is None or _strength(interaction) > _strength(known):
            largest[contrast.factors] = interaction
    return tuple(largest.values())


def _interaction(contrast: InteractionContrast, paired: PairedDifference) -> Interaction | None:
    ends = interval_ends(paired.interval)
    if ends is None or paired.value is None:
        return None
    interval = Interval(2 * ends.low, 2 * ends.high)
    return Interaction(
        factors=contrast.factors,
        levels=contrast.levels,
        within=contrast.within,
        difference=2 * paired.value,
        interval=interval,
        is_shown=interval.leaves_out_zero,
    )


def _strength(interaction: Interaction) -> tuple[bool, float]:
    return interaction.is_shown, abs(interaction.difference)


def _find_cheapest(
    ranking: Ranking, columns: Sequence[RunColumns], *, margin: float | None, settings: ComparisonSettings
) -> CheapestVariant | None:
    """What costs least of all that is not shown to be worse than the highest, or is shown not to be worse by a margin.

    Bounds of all ordered pairs hold together, so it does not matter that the data choose which two are looked at.
    """
    highest, *others = places_by_rate(ranking)
    costs = [entry.figures.cost_per_100 for entry in ranking.runs if entry.figures.cost_per_100 is not None]
    if len(costs) < len(ranking.runs):
        return None
    highest_cost = costs[highest]

    candidates = []
    for place in others:
        cost = costs[place]
        if cost >= highest_cost:
            continue
        if margin is None:
            is_as_good = pair_of(ranking, highest, place).worse is None
        else:
            ordered_pairs = len(columns) * (len(columns) - 1)
            level = shared_confidence(ordered_pairs, settings.confidence)
            one_sided = msgspec.structs.replace(settings, confidence=level)
            bound = compare_pass_rates(columns[highest], columns[place], settings=one_sided).lower_bound
            is_as_good = bound is not None and bound > -margin
        if is_as_good:
            candidates.append((cost, place))
    if not candidates:
        return None

    cost, cheapest = min(candidates)
    return CheapestVariant(
        name=ranking.runs[cheapest].run.label or "",
        cost_per_100=cost,
        highest=ranking.runs[highest].run.label or "",
        highest_cost_per_100=highest_cost,
        margin=margin,
    )


def _matrix(grid: Grid, ranking: Ranking) -> Matrix | None:
    """The pass-rates of a grid of two factors, the one with more levels downwards."""
    if len(grid.varied) != 2:
        return None

    row_factor, column_factor = sorted(grid.varied, key=lambda factor: -len(grid.levels[factor]))
    others = {name: levels[0] for name, levels in grid.levels.items() if name not in grid.varied}
    pass_rates = []
    for row in grid.levels[row_factor]:
        places = [
            grid.column({**others, row_factor: row, column_factor: column}) for column in grid.levels[column_factor]
        ]
        pass_rates.append(tuple(None if place is None else ranking.runs[place].run.pass_rate for place in places))
    return Matrix(
        row_factor=row_factor,
        column_factor=column_factor,
        rows=tuple(grid.levels[row_factor]),
        columns=tuple(grid.levels[column_factor]),
        pass_rates=tuple(pass_rates),
    )
