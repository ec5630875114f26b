"""What `deemster agreement` reads: verdicts of judges and labels of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import click

from deemster.cli._console import note
from deemster.cli.options import Command, columns_option, group_flags, take_flags
from deemster.cli.store_options import is_report_file, open_run, store_option
from deemster.errors import ConfigurationError, InputError, Issue, visible

if TYPE_CHECKING:
    from deemster.datasets import RubricDataset, Votes

Source: TypeAlias = Literal["votes", "sheet", "run", "cases"]
_SHEETS = (".csv", ".tsv", ".xlsx")
# What a file is called that a person may take for one of votes or cases.
_FILES = (*_SHEETS, ".json", ".jsonl", ".yml", ".yaml")
_VIEWER = "viewer"


class AgreementInputs(NamedTuple):
    """Where verdicts and labels come from.

    Attributes:
        source: Votes, a spreadsheet of verdicts, a run, or a file of cases.
        labels: A spreadsheet of labels, a rubric dataset, or `viewer`.
        rubric: The rubric of a spreadsheet of verdicts.
        columns: Which column of a spreadsheet holds what.
        store: Where a run is stored.
    """

    source: str
    labels: str | None
    rubric: str | None
    columns: dict[str, list[str]] | None
    store: str

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return [path for path in (self.source, self.labels, self.rubric) if path is not None]

    @property
    def has_labelled_dataset(self) -> bool:
        """Whether the labels are those of a rubric dataset."""
        return self.labels is not None and self.labels != _VIEWER and not _is_sheet(self.labels)

    def kind_of_source(self) -> Source:
        """What the source is, by its name and content; votes where it cannot be read, whose reader says why."""
        from deemster.evaluation.check_file import find_kind
        from deemster.store.open_runs import is_run_file

        if _is_sheet(self.source):
            return "sheet"

        path = Path(self.source)
        if not path.is_file():
            return "votes" if path.suffix.lower() in _FILES else "run"
        if is_run_file(path):
            return "run"

        try:
            kind = find_kind(self.source)
        except InputError:
            return "votes"
        sources: dict[str, Source] = {"report": "run", "calibration": "cases"}
        return sources.get(kind, "votes")

    def check(self, kind: Source) -> None:
        """Refuse flags that do not go together.

        Args:
            kind: What the source is.

        Raises:
            ConfigurationError: Some were given.
        """
        has_sheet = kind == "sheet" or (self.labels is not None and _is_sheet(self.labels))
        rules = (
            (kind == "run" and self.rubric is not None, "A run has its verdicts: leave out `--rubric`."),
            (
                kind == "run" and is_report_file(self.source),
                "A report file holds no labels of people: name a sheet of them by `--labels FILE`.",
            ),
            (
                kind == "votes" and self.rubric is not None,
                "A votes file has its rubric; leave out `--rubric`.",
            ),
            (
                kind == "sheet" and self.has_labelled_dataset,
                "A rubric dataset of labels goes with a votes file or a run; beside a spreadsheet, labels are one too.",
            ),
            (self.columns is not None and not has_sheet, "`--columns` needs a spreadsheet."),
        )
        issues = [Issue(message) for is_wrong, message in rules if is_wrong]
        if issues:
            raise ConfigurationError(issues)

    def load(self, kind: Source) -> tuple[Votes, RubricDataset | None]:
        """The votes, and the labels that win over those in the votes.

        Args:
            kind: What the source is.

        Raises:
            InputError: A file cannot be used; all issues are listed.
        """
        if kind == "run":
            return self._load_run()
        if kind == "sheet":
            return self._load_sheets()
        return self._load_votes()

    def _load_run(self) -> tuple[Votes, RubricDataset | None]:
        from deemster.calibration.people_labels import labelled_votes, rubric_votes
        from deemster.datasets import RubricDataset

        labels = None if self.labels is None else RubricDataset.load(self.labels)
        read_votes = labelled_votes if labels is None else rubric_votes
        with open_run(self.store, self.source) as (opened, name):
            return read_votes(opened, opened.run(name)), labels

    def _load_sheets(self) -> tuple[Votes, RubricDataset | None]:
        from deemster.datasets import read_spreadsheets

        rubric, votes, labels = read_spreadsheets(
            labels=self.labels, verdicts=self.source, rubric=self.rubric, columns=self.columns
        )
        if votes is None:
            raise AssertionError("a sheet of verdicts was read and holds none")
        if self.rubric is None:
            kinds = ", ".join(f"`{criterion.name}` is {criterion.kind}" for criterion in rubric.criteria)
            note(visible(f"no --rubric: by their values {kinds}."))
        return votes, labels

    def _load_votes(self) -> tuple[Votes, RubricDataset | None]:
        from deemster.datasets import RubricDataset, Votes, read_spreadsheets

        votes = Votes.load(self.source)
        if self.labels is None:
            return votes, None
        if self.has_labelled_dataset:
            return votes, RubricDataset.load(self.labels)

        rubrics = [block.rubric for block in votes.blocks]
        if len(rubrics) > 1:
            message = "The votes have several rubrics; give the labels as a rubric dataset."
            raise ConfigurationError(Issue(message, self.source))
        return votes, read_spreadsheets(labels=self.labels, rubric=rubrics[0], columns=self.columns).labels


def _is_sheet(path: str) -> bool:
    return Path(path).suffix.lower() in _SHEETS


def input_options(command: Command) -> Command:
    """Add the flags of inputs; the command receives them, and the argument, as one ``inputs``."""
    options = [
        click.option(
            "--labels",
            metavar="FILE|viewer",
            help="People's labels: a spreadsheet; a rubric dataset, whose labels win over those in the votes; "
            "or `viewer`. With a sheet or `viewer`, the numbers of a RUN are corrected.",
        ),
        click.option(
            "--rubric", metavar="FILE", help="The rubric of a spreadsheet; derived from the values unless given."
        ),
        columns_option,
        store_option,
    ]
    return group_flags(command, "inputs", lambda flags: take_flags(AgreementInputs, flags), options)
