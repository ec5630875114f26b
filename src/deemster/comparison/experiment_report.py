"""What an experiment says to people: the ranking of its variants, what its factors do, and its grid."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deemster.comparison.ranking_report import (
    DrawnDifference,
    difference_figures,
    entry_name,
    format_cost,
    format_lead,
    headline_section,
    in_paragraphs,
    pair_of,
    places_by_rate,
    ranking_rows,
)
from deemster.errors import list_first, plural
from deemster.report.pull_request_comment import CommentContent, render_comment
from deemster.stats.power_analysis import PairedNoise, detectable_drop
from deemster.stats.run_ranking import pair_confidence
from deemster.text.number_format import format_number
from deemster.text.text_sections import (
    DataText,
    Figure,
    SentenceText,
    ShadedNumber,
    TextLine,
    TextSection,
    TextTable,
    join_names,
    join_parts,
)

if TYPE_CHECKING:
    from deemster.comparison.experiment import Experiment, FactorAnswer, Interaction, LevelContrast, VariantGate
    from deemster.comparison.ranking import Ranking

# With fewer samples than this, only large differences show.
FEW_SAMPLES = 20
# A comment has so many lines about the variants.
_MOST_NOTES = 20
# So many of the checks that decided against a variant are named with it.
_MOST_CHECKS = 3
# So many variants are named with what their gates decided.
_MOST_NAMES = 20
_GATE_WORDS = {"pass": "pass", "fail": "fail", "inconclusive": "inconclusive", "skipped": "not decided"}
# So many samples flip from run to run where nothing has changed, as is usual.
_USUAL_FLIPS = 0.1


def describe_resolution(samples: int, variants: int, *, confidence: float = 0.95) -> str:
    """What so many samples can show of so many variants, before anything runs.

    >>> describe_resolution(12, 4)
    'With 12 samples and 4 variants, only a difference of about 96 points or more shows reliably (80 %).'
    """
    noise = PairedNoise(flip_rate=_USUAL_FLIPS)
    smallest = detectable_drop(samples, noise, confidence=pair_confidence(variants, confidence))
    counts = f"With {plural(samples, 'sample')} and {plural(variants, 'variant')}"
    if smallest is None:
        return f"{counts}, no difference between two of them can be shown."
    return f"{counts}, only a difference of about {100 * smallest:.0f} points or more shows reliably (80 %)."


def experiment_sections(experiment: Experiment) -> list[TextSection]:
    """What an experiment says, in order."""
    headline = headline_section(
        experiment.ranking,
        noun="variant",
        before=[*gate_lines(experiment), *_missing_lines(experiment)],
        after=_cheapest_lines(experiment),
    )
    sections = [headline]
    if experiment.factors:
        lines = list(_factor_lines(experiment))
        sections.append(TextSection(("Factors",), lines, key="factors", figures=_factor_figures(experiment)))
    if experiment.matrix is not None:
        sections.append(_matrix_section(experiment))
    return sections


def experiment_overview(experiment: Experiment, name: str | None, *, store_flag: str) -> list[TextSection]:
    """What an experiment says on a terminal, and the commands that show more.

    Args:
        experiment: The experiment.
        name: What stands for it in a command; None where it is not stored.
        store_flag: The `--store` that a command needs.
    """
    sections = in_paragraphs(experiment_sections(experiment))
    return sections if name is None else [*sections, _next_steps(experiment.ranking, name, store_flag)]


def _next_steps(ranking: Ranking, name: str, store_flag: str) -> TextSection:
    """The commands that show more: all outputs side by side, the report of the highest, and it against the next."""
    highest, *others = places_by_rate(ranking)
    commands = ["view", f"show {_command_name(ranking, name, highest)}"]
    if others:
        older, newer = sorted((highest, others[0]))
        commands.append(f"compare {_command_name(ranking, name, older)} {_command_name(ranking, name, newer)}")

    calls = [DataText(f"deemster {command}{store_flag}") for command in commands]
    lines = [("      " if place else "Next: ", call) for place, call in enumerate(calls)]
    return TextSection((), lines, key="next")


def _command_name(ranking: Ranking, name: str, place: int) -> str:
    return shlex.quote(f"{name}/{entry_name(ranking.runs[place])}")


def gate_lines(experiment: Experiment) -> Iterator[TextLine]:
    """What the gate decided of each variant, as one line; none without a gate."""
    words: list[str] = []
    for status, said in _GATE_WORDS.items():
        names = [_gated_name(name, gate) for name, gate in experiment.gates.items() if gate.status == status]
        if names:
            listed = join_parts(names[:_MOST_NAMES], more=len(names) - _MOST_NAMES)
            words += ["; " if words else "Gate: ", f"{said} for ", *listed]
    if words:
        yield (*words, ".")


def _gated_name(name: str, gate: VariantGate) -> TextLine:
    """A variant, and the checks that decided against it."""
    if gate.status == "pass" or not gate.checks:
        return (DataText(name),)
    return (DataText(name), " (", DataText(list_first(gate.checks[:_MOST_CHECKS], len(gate.checks))), ")")


def _missing_lines(experiment: Experiment) -> Iterator[TextLine]:
    for variant in experiment.missing:
        yield ("Warning: ", DataText(variant.name), " is missing: ", SentenceText(variant.reason), ".")


def _cheapest_lines(experiment: Experiment) -> Iterator[TextLine]:
    cheapest = experiment.cheapest
    if cheapest is None:
        return
    proof = "is not shown to be worse"
    if cheapest.margin is not None:
        proof = f"is worse by less than {100 * cheapest.margin:.4g} points, if at all,"
    yield (
        f"The cheapest that {proof} than ",
        DataText(cheapest.highest),
        ": ",
        DataText(cheapest.name),
        f", ${format_cost(cheapest.cost_per_100)} in place of ${format_cost(cheapest.highest_cost_per_100)} for 100.",
    )


def _factor_lines(experiment: Experiment) -> Iterator[TextLine]:
    """What each factor does on average; where factors depend on each other, that in place of an average."""
    for factor in experiment.factors:
        if not factor.depends_on:
            yield _main_line(experiment, factor)
    for interaction in experiment.interactions:
        if interaction.is_shown:
            yield from _interaction_lines(experiment, interaction)


def _factor_figures(experiment: Experiment) -> list[Figure]:
    """The effects of the factors of which an average says something."""
    differences = []
    for factor in experiment.factors:
        for contrast in () if factor.depends_on else factor.contrasts:
            name = f"{factor.factor}: {contrast.second} over {contrast.first}"
            differences.append(DrawnDifference(name, contrast.difference, contrast.interval))
    return difference_figures("What a level of a factor does, averaged over the other factors", differences)


def _main_line(experiment: Experiment, factor: FactorAnswer) -> TextLine:
    others = [other.factor for other in experiment.factors if other.factor != factor.factor]
    average: TextLine = (", averaged over ", *join_names(others)) if others else ()
    better: list[TextLine] = []
    for level in factor.levels:
        better += _better_than(level, [contrast for contrast in factor.contrasts if contrast.better == level])
    open_pairs = [contrast for contrast in factor.contrasts if contrast.better is None]
    if better:
        rest = ("; no other difference is shown",) if open_pairs else ()
        said: TextLine = (*join_parts(better), *average, *rest)
    else:
        said = ("no difference is shown between ", *join_names(factor.levels), *average)
    return (DataText(factor.factor), ": ", *said, *_gaps(factor.contrasts), ".")


def _better_than(level: str, contrasts: Sequence[LevelContrast]) -> Iterator[TextLine]:
    """That a level is better than others, and by how much: so much by each of their intervals."""
    if not contrasts:
        return
    others = [contrast.second if contrast.first == level else contrast.first for contrast in contrasts]
    lead = format_lead(*(contrast.interval for contrast in contrasts))
    worse = join_names(others)
    yield (DataText(level), " is better than ", *worse, f" by {lead}")


def _gaps(contrasts: Sequence[LevelContrast]) -> TextLine:
    """Where an average leaves something out, since a variant is missing."""
    gaps = {tuple(levels.items()): levels for contrast in contrasts for levels in contrast.missing}
    if not gaps:
        return ()
    return (
        "; not counting ",
        *join_parts([_combination(levels) for levels in gaps.values()]),
        ", where a variant is missing",
    )


def _combination(levels: Mapping[str, str]) -> TextLine:
    return join_parts([(DataText(factor), " ", DataText(level)) for factor, level in levels.items()])


def _interaction_lines(experiment: Experiment, interaction: Interaction) -> Iterator[TextLine]:
    """That one factor's effect depends on another, and what the variants themselves say."""
    one, other = interaction.factors
    here, there = interaction.within
    if interaction.difference < 0:
        here, there = there, here
    yield (
        *(DataText(one), " depends on ", DataText(other), ": from ", DataText(interaction.levels[0]), " to "),
        *(DataText(interaction.levels[1]), f" it gains {format_lead(interaction.interval)} more with "),
        *(DataText(there), " than with ", DataText(here), ". Look at the variants, not at an average."),
    )
    # With more factors no two variants alone say what two levels do.
    if len(experiment.factors) == 2:
        for level in interaction.within:
            yield _cell_line(experiment, interaction, level)


def _cell_line(experiment: Experiment, interaction: Interaction, within: str) -> TextLine:
    """What two variants say that differ in one factor alone, at one level of the other."""
    one, other = interaction.factors
    first, second = (_find_cell(experiment, {one: level, other: within}) for level in interaction.levels)
    pair = pair_of(experiment.ranking, first, second)
    names = [DataText(level) for level in interaction.levels]
    if pair.worse is None:
        return ("With ", DataText(within), ", no difference is shown between ", names[0], " and ", names[1], ".")
    better = first + second - pair.worse
    ahead, behind = names if better == first else reversed(names)
    lead = format_lead(pair.interval)
    return ("With ", DataText(within), ", ", ahead, " is better than ", behind, f" by {lead}.")


def _find_cell(experiment: Experiment, levels: Mapping[str, str]) -> int:
    """The place of the variant that has these levels of the two factors that are varied."""
    return next(place for place, variant in enumerate(experiment.variants) if levels.items() <= variant.levels.items())


def _matrix_section(experiment: Experiment) -> TextSection:
    """The pass-rates of all variants: one factor downwards, the other across."""
    matrix = experiment.matrix
    if matrix is None:
        raise AssertionError("only a grid of two factors has a matrix")
    rows = [
        (DataText(level), *(_shaded(rate) for rate in rates))
        for level, rates in zip(matrix.rows, matrix.pass_rates, strict=True)
    ]
    head = (DataText(matrix.row_factor), *map(DataText, matrix.columns))
    title = ("Pass-rates: ", DataText(matrix.row_factor), " by ", DataText(matrix.column_factor))
    return TextSection(title, table=TextTable(head, rows), key="matrix")


def _shaded(rate: float | None) -> str:
    return "missing" if rate is None else ShadedNumber(format_number(rate, places=2), rate, is_rate=True)


def experiment_comment(experiment: Experiment) -> str:
    """What an experiment says, as Markdown for a pull request."""
    headline, *parts = experiment_sections(experiment)
    notes = [*headline.lines, *headline.after, *(line for section in parts for line in section.lines)]
    content = CommentContent(
        suite=experiment.name or experiment.id,
        gate=None,
        part=None,
        verdict=headline.title,
        meaning="",
        notes=notes[:_MOST_NOTES],
        tables=[headline, *parts],
        title="",
        total=0,
        samples=(),
        run=(experiment.id, experiment.tool_version),
        tables_title="Variants",
    )
    return render_comment(content)


def experiment_rows(experiment: Experiment) -> Iterator[dict[str, Any]]:
    """The numbers of each variant as a row, in their order."""
    for variant, row in zip(experiment.variants, ranking_rows(experiment.ranking), strict=True):
        numbers = {name: value for name, value in row.items() if name != "label"}
        yield {"variant": variant.name, **variant.levels, **numbers}
