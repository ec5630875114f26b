"""`deemster rubric improve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from deemster.cli._console import note, progress_shown, say
from deemster.cli._dry_run import show_planned
from deemster.cli.options import Asked, asking_options
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ExitCode, Issue, ReportError, RubricError, counted, visible
from deemster.formats import Reading, format_of
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.judge_panel import Judge
from deemster.report import Destination
from deemster.report.improvement_report import Improvement, WordingTrial
from deemster.report.report_files import write_pieces
from deemster.report.text_sections import format_number
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_reader import FORMATS
from deemster.runs.improve_rubric import Forecast, forecast, run_improvement
from deemster.runs.improvement_judging import ALPHA, CRITERIA, EXEMPLARS, ROUNDS, ImprovementSettings
from deemster.runs.run_sync import run_sync

_SUFFIX = ".progress.jsonl"
_REPORTS = {".md": "markdown", ".markdown": "markdown", ".json": "json"}


@click.command("improve", short_help="Reword what judges and people disagree about.")
@click.argument("rubric", type=click.Path())
@click.argument("dataset", type=click.Path())
@click.option("--judge", "judges", multiple=True, required=True, metavar="ROLE", help="Who grades; repeatable.")
@click.option("--writer", metavar="ROLE", help="Who proposes wordings; the first judge unless given.")
@click.option("--out", required=True, metavar="FILE", help="Where the new rubric goes.")
@click.option("--report", multiple=True, metavar="FILE", help="Write every try, as .md or .json; repeatable.")
@click.option("--rounds", type=int, default=ROUNDS, show_default=True, help="Wordings looked for, for each criterion.")
@click.option("--criteria", type=int, default=CRITERIA, show_default=True, help="How many criteria are looked at.")
@click.option("--exemplars", type=int, default=EXEMPLARS, show_default=True, help="Disagreements the writer sees.")
@click.option("--train", type=float, default=0.5, show_default=True, help="The share of items to learn from.")
@click.option("--cluster", metavar="KEY", help="Never divide items with the same value of this metadata key.")
@click.option("--alpha", type=float, default=ALPHA, show_default=True, help="The chance of any false improvement.")
@click.option("--seed", type=int, default=0, show_default=True, help="What everything random derives from.")
@click.option("--resume", is_flag=True, help="Go on from where earlier work stopped.")
@asking_options
@click.option("--dry-run", is_flag=True, help="Count what the models would be asked and what that costs; ask nothing.")
@click.option("--quiet", is_flag=True, help="Show no progress and nothing on the terminal.")
def improve(
    *,
    rubric: str,
    dataset: str,
    judges: tuple[str, ...],
    out: str,
    report: tuple[str, ...],
    resume: bool,
    asked: Asked,
    dry_run: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Reword what judges and people disagree about, where held-out agreement speaks for it.

    DATASET holds submissions with people's labels. Part of it is learnt from: a model sees the criteria that judges
    and people agree least about, with submissions about which they disagree, and words them anew. The rest decides: a
    wording is accepted where agreement there rises by more than noise. Exit codes: 0 done, 2 bad input, 3 incomplete:
    --resume goes on.
    """
    destinations = _destinations(out, report)
    known = Rubric.load(rubric)
    if Path(out).exists() and Path(out).samefile(rubric):
        raise ReportError(Issue("The new rubric would overwrite the one it comes from: name another file.", out))
    items = RubricDataset.load(dataset, rubric=known)
    grader = CriterionGrader(tuple(Judge(role, role) for role in judges), seed=options["seed"])
    settings = ImprovementSettings(grader, options.pop("writer") or judges[0], **options)
    if dry_run:
        _show_forecast(run_sync(forecast(known, items, settings, access=asked.asking(calls=False))))
        return
    path = Path(f"{out}{_SUFFIX}")
    with progress_shown(quiet=quiet) as progress:
        work = run_improvement(
            known, items, settings, access=asked.asking(), path=path, resume=resume, progress=progress
        )
        found = run_sync(work)
    found.after.dump(out)
    for destination in destinations:
        text = found.to_markdown() if destination.format == "markdown" else found.to_json()
        write_pieces((text.encode(),), destination)
    if not quiet:
        say("\n".join([*_lines(found, out), *([found.diff.rstrip("\n")] if found.diff else [])]) + "\n")
    if not found.complete:
        note(f"incomplete: {visible(found.stopped)}; go on with --resume")
        sys.exit(ExitCode.INCOMPLETE)
    path.unlink(missing_ok=True)


def _show_forecast(found: Forecast) -> None:
    show_planned(found.planned)
    wordings = counted(found.written, "wording")
    note(f"That grades the part learnt from. In all it is at most {found.judged:,} requests to judges and {wordings}.")


def _destinations(out: str, reports: tuple[str, ...]) -> list[Destination]:
    """Where reports go; what cannot be written is said before a model is asked.

    Raises:
        RubricError: The new rubric has no extension of a rubric.
        ReportError: A report has no extension of a report, or something cannot be written.
    """
    format_of(out, Reading(out, error=RubricError), known=FORMATS)
    found = []
    for path in reports:
        kind = _REPORTS.get(Path(path).suffix.lower())
        if kind is None:
            raise ReportError(Issue("A report of an improvement is Markdown (`.md`) or JSON (`.json`).", path))
        found.append(Destination(kind, path))
    for destination in (Destination("json", out), *found):
        destination.check()
    return found


def _lines(found: Improvement, out: str) -> list[str]:
    lines = []
    for number, each in enumerate(found.tries, 1):
        lines.append(visible(f"try {number}, round {each.round}: {each.criterion}: {each.decision}{_numbers(each)}"))
        if each.message is not None:
            lines.append(f"    {visible(each.message)}")
    names = ", ".join(f"`{name}`" for name in found.accepted)
    cost = "" if found.cost_usd is None else f", ${found.cost_usd:.4f}"
    lines.append(visible(f"{out}: {f'new wording for {names}' if names else 'no wording was accepted'}{cost}"))
    return lines


def _numbers(each: WordingTrial) -> str:
    gain = each.held_out
    if gain is None:
        return ""
    p = "n/a" if gain.p_value is None else f"{gain.p_value:.4g}"
    change = f"{format_number(gain.before)} to {format_number(gain.after)}"
    return f" (held-out agreement {change}, {gain.better} better, {gain.worse} worse, p {p}, level {each.level:.4g})"
