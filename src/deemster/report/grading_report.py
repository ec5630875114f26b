"""A grading for people: the score, every criterion, every judge."""

from __future__ import annotations

from rich.console import Console

from deemster.errors import counted
from deemster.judges.grading_result import Grading
from deemster.report._markdown_report import markdown_of
from deemster.report.report_sections import Data, Line, Section, Table, criteria_table, decimals, span
from deemster.report.terminal_report import show_sections
from deemster.results.grading_figures import GradingFigures, JudgeFigures

_JUDGES = ("judge", "role", "votes", "failed", "not asked", "mean score", "cost in USD")


def grading_markdown(grading: Grading, figures: GradingFigures) -> str:
    """The grading as Markdown."""
    return markdown_of(grading_sections(grading, figures))


def grading_console(grading: Grading, figures: GradingFigures, console: Console) -> None:
    """Print the grading as tables; what the Markdown says, it says too."""
    show_sections(grading_sections(grading, figures), console)


def grading_sections(grading: Grading, figures: GradingFigures) -> list[Section]:
    """What a grading says to people, in order.

    Args:
        grading: The grading.
        figures: Its numbers.
    """
    rows: list[Line] = [(Data(name), *row) for name, row in criteria_table(figures.criteria)]
    head = ("criterion", "mean value", "95% interval", "judged", "abstained", "failed", "agreement")
    lines: list[Line] = [("The mean value of a criterion that is met or not is the share that met it.",)]
    return [
        Section(("Grading",), _lines(grading, figures)),
        Section(("Criteria",), lines, Table(head, rows, ("agreement", "95% interval"))),
        Section(("Judges",), table=Table(_JUDGES, [_judge(judge) for judge in figures.judges], ("role",))),
    ]


def _lines(grading: Grading, figures: GradingFigures) -> list[Line]:
    name: Line = ("The dataset",) if grading.dataset.name is None else ("The dataset ", Data(grading.dataset.name))
    counts = f": {counted(figures.n, 'item')}, {figures.n_scored:,} scored, {figures.n_failed:,} could not be graded."
    lines: list[Line] = [(*name, counts)]
    if grading.run is not None:
        lines.append(("Stored as ", Data(grading.run), "."))
    lines += [("Warning: this grading is mixed: ", Data(change)) for change in grading.mixed]
    score = f"Mean score: {decimals(figures.mean_score)}, 95% interval {span(figures.mean_score_interval)}."
    lines.append((score,))
    if figures.failed_fatal:
        lines.append((f"{counted(figures.failed_fatal, 'item')} failed a fatal criterion.",))
    cost = "cost unknown" if figures.cost_usd is None else f"{float(figures.cost_usd):.4f} USD"
    kept = f"{figures.cached_calls:,} answered from a cache or recording"
    lines.append((f"{counted(figures.calls, 'call')}, {kept}, {cost}.",))
    return lines


def _judge(judge: JudgeFigures) -> Line:
    return (
        Data(judge.id),
        Data(judge.model),
        f"{judge.votes:,}",
        f"{judge.failed:,}",
        f"{judge.not_run:,}",
        decimals(judge.mean_score),
        "n/a" if judge.cost_usd is None else f"{float(judge.cost_usd):.4f}",
    )
