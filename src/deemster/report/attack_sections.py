"""How often attacks succeeded, as reports show it: by category, severity, mutator, and item of each framework."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deemster.errors import plural
from deemster.results.attack_success import AdversarialSummary, AttackFigures
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns
from deemster.text.text_sections import DataText, MetricName, TextSection, TextTable


def attack_sections(attacks: AdversarialSummary | None) -> Iterator[TextSection]:
    """How often attacks succeeded, over all, and by framework where samples name one."""
    if attacks is None:
        return

    kinds = {"category": attacks.categories, "severity": attacks.severities, "mutator": attacks.mutators}
    groups = [(kind, group) for kind, groups_of_kind in kinds.items() for group in groups_of_kind]

    overall = attacks.overall
    succeeded = f"{overall.successes:,} of {plural(overall.executions, 'attack')} succeeded"
    if overall.undecided:
        succeeded += f"; {overall.undecided:,} could not be decided"
    if overall.worst_severity:
        succeeded += f", worst severity that got through: {overall.worst_severity}"

    yield TextSection(
        (f"Attack success rate: {format_number(overall.attack_success_rate)}",),
        [
            (f"95% interval {format_interval(overall.interval)}, clustered by seed. Lower is better.",),
            (f"{succeeded}. Decided by ", MetricName(", ".join(attacks.metrics)), "."),
        ],
        _attack_table(groups, second="by"),
        key="attacks",
    )

    items = [(framework.name, item) for framework in attacks.frameworks for item in framework.items]
    if items:
        yield TextSection(
            ("Attack success by framework",), table=_attack_table(items, second="framework"), key="attack-frameworks"
        )


def _attack_table(groups: Sequence[tuple[str, AttackFigures]], *, second: str) -> TextTable:
    """A row for each group of attacks, whose kind stands in the second column."""
    head = ("attacks", second, "samples", "succeeded", "undecided", "rate", "95% interval", "worst through")
    rows = [
        (
            DataText(group.name),
            DataText(kind),
            str(group.samples),
            str(group.successes),
            str(group.undecided),
            format_number(group.attack_success_rate),
            format_interval(group.interval),
            _worst_severity(group),
        )
        for kind, group in groups
    ]
    cells = [IntervalCell(group.attack_success_rate, group.interval) for _, group in groups]
    plots = drawn_columns(PlotColumn("attack success", cells, "95% interval"))
    return TextTable(head, rows, ("undecided", "succeeded", "95% interval"), plots)


def _worst_severity(figures: AttackFigures) -> str:
    if figures.successes:
        return figures.worst_severity or "unrated"
    return "n/a" if figures.attack_success_rate is None else "none"
