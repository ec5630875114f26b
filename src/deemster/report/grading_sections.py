"""What a grading says to people, and its results as JSON: the score, every criterion, every judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from deemster.agreement.agreement_report import short_agreement_sections
from deemster.agreement.metrics_result import MetricsResult
from deemster.errors import plural
from deemster.report.criteria_sections import criteria_plots, criteria_table
from deemster.report.grading_summary import GradingSummary, JudgeSummary
from deemster.report.panel_lines import incomplete_panels, state_panel
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import BarCell, PlotColumn, drawn_columns
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.grading_result import Grading

_SCHEMA = "deemster.grading.v1"
_MORE = "All tables: write the votes with --to votes.json, then `deemster agreement FILE --full`."
_JUDGES = ("judge", "role", "votes", "failed", "not asked", "mean score", "cost in USD")


def grading_sections(grading: Grading) -> list[TextSection]:
    """What a grading says of its items, criteria and judges, in order."""
    figures = grading.figures
    rows: list[TextLine] = [(DataText(name), *row) for name, row in criteria_table(figures.criteria)]
    head = ("criterion", "mean value", "95% interval", "judged", "abstained", "failed", "agreement")
    lines: list[TextLine] = [("The mean value of a criterion that is met or not is the share that met it.",)]
    criteria = criteria_plots(list(figures.criteria.values()))
    scores = [BarCell(judge.mean_score) for judge in figures.judges]
    bars = drawn_columns(PlotColumn("mean score", scores, "mean score")) if grading.settings["normalize"] else []
    judges = [_judge(judge) for judge in figures.judges]
    table = TextTable(head, rows, ("agreement", "95% interval"), criteria)
    return [
        TextSection(("Grading",), _lines(grading), key="headline"),
        TextSection(("Criteria",), lines, table, key="criteria"),
        TextSection(("Judges",), table=TextTable(_JUDGES, judges, ("role",), bars), key="judges"),
    ]


def agreement_sections(grading: Grading) -> list[TextSection]:
    """How its judges agree with people, in short; nothing where the dataset has no labels."""
    found = grading.agreement
    return short_agreement_sections(found, more=_MORE) if isinstance(found, MetricsResult) else []


def _lines(grading: Grading) -> list[TextLine]:
    figures = grading.figures
    name: TextLine = (
        ("The dataset",) if grading.dataset.name is None else ("The dataset ", DataText(grading.dataset.name))
    )
    counts = f": {plural(figures.n, 'item')}, {figures.n_scored:,} scored, {figures.n_failed:,} could not be graded."
    lines: list[TextLine] = [(*name, counts)]
    if grading.run is not None:
        lines.append(("Stored as ", DataText(grading.run), "."))
    lines += [("Warning: this grading is mixed: ", DataText(change)) for change in grading.mixed]
    score = (
        f"Mean score: {format_number(figures.mean_score)}, 95% interval {format_interval(figures.mean_score_interval)}."
    )
    lines.append((score,))
    lines += _panel_lines(figures)
    if figures.failed_fatal:
        lines.append((f"{plural(figures.failed_fatal, 'item')} failed a fatal criterion.",))
    cost = "cost unknown" if figures.cost_usd is None else f"{float(figures.cost_usd):.4f} USD"
    known = [count for count in (figures.prompt_tokens, figures.completion_tokens) if count is not None]
    tokens = f" of {sum(known):,} tokens" if known else ""
    reused = "" if figures.cached_call_tokens is None else f" ({figures.cached_call_tokens:,} tokens)"
    kept = f"{figures.cached_calls:,} answered from a cache or recording{reused}"
    lines.append((f"{plural(figures.calls, 'call')}{tokens}, {kept}, {cost}.",))
    if grading.agreement is None and len(grading.judges) > 1:
        lines.append((f"This is {state_panel(len(grading.judges))}",))
    if isinstance(grading.agreement, str):
        lines.append(("There is no agreement with people: ", DataText(grading.agreement)))
    return lines


def _panel_lines(figures: GradingSummary) -> Iterator[TextLine]:
    """Which scores lack a vote, or are not there for lack of one, and which may lack some."""
    if figures.n_below_quorum:
        without = f"{plural(figures.n_below_quorum, 'item')} of {figures.n:,} got no score"
        yield (f"Warning: {without}: too few judges of the panel answered; `--resume` asks them again.",)
    if figures.panels is None:
        return
    if figures.panels.n_incomplete:
        yield (f"Warning: {incomplete_panels(figures.panels)}",)
    if figures.panels.quorum is not None:
        yield (f"A score needs {plural(figures.panels.quorum, 'vote')} on each criterion (`quorum`).",)


def _judge(judge: JudgeSummary) -> TextLine:
    return (
        DataText(judge.id),
        DataText(judge.model),
        f"{judge.votes:,}",
        f"{judge.failed:,}",
        f"{judge.not_run:,}",
        format_number(judge.mean_score),
        "n/a" if judge.cost_usd is None else f"{float(judge.cost_usd):.4f}",
    )


def grading_json(grading: Grading) -> Iterator[bytes]:
    """The results of a grading as JSON, item by item."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    head = {
        "schema_version": _SCHEMA,
        "run": grading.run,
        "status": grading.status,
        "reason": grading.reason,
        "mixed": grading.mixed,
        "dataset": grading.dataset.name,
        "dataset_fingerprint": grading.dataset_fingerprint,
        "settings": grading.settings,
        "figures": grading.figures,
        "alignment": grading.agreement if isinstance(grading.agreement, MetricsResult) else None,
    }
    yield encode(head)[:-1] + b',"items":['
    for place, item in enumerate(grading.items):
        row = {
            "id": item.id,
            "score": item.score,
            "raw_score": item.raw_score,
            "unscored": item.unscored,
            "failed_votes": sum(vote.failure is not None for vote in item.votes),
            "verdicts": {each.criterion: each.verdict for each in item.criteria},
            "judge_scores": item.judge_scores,
        }
        yield (b"," if place else b"") + encode(row)
    yield b"]}\n"
