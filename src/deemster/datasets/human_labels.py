"""Labels that people gave outputs: reads them from a sheet, joins annotators, keeps them beside a judge's verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from deemster.datasets._spreadsheet_columns import Columns, Sheet, load_sheets
from deemster.datasets.label_words import ABSTAIN_WORDS, FAIL_WORDS, PASS_WORDS, parse_number
from deemster.errors import DatasetError, Issue, did_you_mean, list_names, plural
from deemster.formats.document import sort_issues
from deemster.rubrics.verdicts import fold_label

LabelKind: TypeAlias = Literal["verdict", "score", "option"]
# What a person says of an output that passes or fails as a whole.
PASS, FAIL = "pass", "fail"
_PROBABILITY, _STRATUM = "inclusion_probability", "stratum"


class HumanLabel(NamedTuple):
    """What one person says of one output.

    Attributes:
        id: The sample.
        subject: The metric, or `metric/criterion`; None where the labels do not say.
        annotator: Who says it; blank where the labels name nobody.
        verdict: 1 for pass, 0 for fail, a number, an option, or None for an abstention.
        probability: How probable it was that the sample is drawn; None where the labels do not say.
        stratum: The stratum in which it was drawn.
        where: Where the label stands, for messages.
        repetition: The repetition whose output the person saw.
        text: The verdict as it was written; blank where it was no text.
        is_drawn: Whether the sample was drawn at random, not picked because it was disputed or uncertain.
    """

    id: str
    subject: str | None
    annotator: str
    verdict: float | str | None
    probability: float | None = None
    stratum: str | None = None
    where: str | None = None
    repetition: int = 0
    text: str = ""
    is_drawn: bool = True


class LabelledPair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people and a judge say of one output.

    Attributes:
        id: The sample.
        truth: What people say: 1 or 0, or a score in [0, 1].
        score: The judge's score.
        passed: Whether the judge passes it.
        probability: How probable it was that the sample is drawn; None where that is not known.
        stratum: The stratum in which it was drawn.
        unit: What it belongs to that counts once, such as a document; None for the sample, all of whose repetitions do.
    """

    id: str
    truth: float
    score: float
    passed: bool
    probability: float | None = None
    stratum: str | None = None
    unit: str | None = None


class LabelledMetric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The labels of one metric, kept so that the numbers of later runs can be corrected by them.

    Attributes:
        kind: Whether people gave verdicts or scores.
        identity: Everything that must be equal for a metric to be the one that was labelled.
        pairs: The labelled outputs.
    """

    kind: Literal["verdict", "score"]
    identity: dict[str, Any]
    pairs: tuple[LabelledPair, ...]

    @property
    def probabilities(self) -> list[float] | None:
        """How probable it was that each sample is drawn; None where some label does not say."""
        known = [pair.probability for pair in self.pairs if pair.probability is not None]
        return known if known and len(known) == len(self.pairs) else None

    @property
    def units(self) -> list[str]:
        """What each sample belongs to that counts once."""
        return [pair.unit or pair.id for pair in self.pairs]

    @property
    def strata(self) -> list[str] | None:
        """The stratum of each sample; None where some label does not say."""
        known = [pair.stratum for pair in self.pairs if pair.stratum is not None]
        return known if known and len(known) == len(self.pairs) else None


class SuiteCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The labels that a suite names, by which its runs are corrected. They are stored with each run.

    Attributes:
        source: What was labelled: the id of a run, or the name of a file of cases.
        metrics: The labels of each metric.
    """

    source: str
    metrics: dict[str, LabelledMetric]


def read_verdict(value: str | float | bool) -> float | str | None:  # noqa: FBT001 - a label of a file
    """A verdict as people write it: 1 for pass, 0 for fail, another number, None for an abstention, else an option.

    >>> read_verdict("Yes"), read_verdict("failed"), read_verdict("0,5"), read_verdict("n/a"), read_verdict("Polite")
    (1.0, 0.0, 0.5, None, 'Polite')
    """
    if isinstance(value, (bool, int, float)):
        return float(value)
    word = fold_label(value)
    if word in PASS_WORDS or word in FAIL_WORDS:
        return float(word in PASS_WORDS)
    if word in ABSTAIN_WORDS:
        return None
    number = parse_number(value)
    return value.strip() if number is None else number


def drawn_labels(labels: Sequence[HumanLabel], *, warn: Callable[[str], None]) -> list[HumanLabel]:
    """The labels of samples that were drawn at random; where there is none, all of them.

    Args:
        labels: The labels.
        warn: Gets a warning where labels are left out, or none is of a sample that was drawn at random.
    """
    drawn = [label for label in labels if label.is_drawn]
    if not drawn:
        warn("No label is of a sample that was drawn at random, so these numbers do not hold for the whole run.")
    elif len(drawn) < len(labels):
        left = plural(len(labels) - len(drawn), "label")
        warn(f"{left} of samples that were not drawn at random left out: they do not speak for the run.")
    return drawn or list(labels)


def as_options(labels: Iterable[HumanLabel], options: Iterable[str]) -> list[HumanLabel]:
    """Labels whose verdict is the option that they name, however it is written.

    Args:
        labels: The labels of one criterion.
        options: The options of the criterion.

    Raises:
        DatasetError: Labels are words that name no option; the words are listed.
    """
    by_word = {fold_label(option): option for option in options}
    named = [label._replace(verdict=by_word.get(fold_label(label.text), label.verdict)) for label in labels]
    unknown = [label for label in named if isinstance(label.verdict, str) and label.verdict not in by_word.values()]
    if unknown:
        raise _unknown_words(unknown, f"The options of this criterion are {list_names(by_word.values())}.")
    return named


def _unknown_words(labels: Sequence[HumanLabel], expected: str) -> DatasetError:
    """The error that labels are words which nobody knows."""
    words = list_names(dict.fromkeys(str(label.verdict) for label in labels))
    first = next((label.where for label in labels if label.where is not None), None)
    return DatasetError(Issue(f"{plural(len(labels), 'label')} cannot be read: {words}. {expected}", first))


def label_kind(labels: Iterable[HumanLabel], *, has_options: bool = False) -> LabelKind:
    """What people gave: verdicts where all are pass or fail, scores where all are numbers from 0 to 1, else options.

    Args:
        labels: The labels of one metric or criterion.
        has_options: Whether it has options that a label may name.

    Raises:
        DatasetError: Labels are words that stand for nothing, numbers lie outside [0, 1], or stand beside words.
    """
    given = [label for label in labels if label.verdict is not None]
    numbers = [label for label in given if isinstance(label.verdict, float)]
    if not numbers and given:
        if has_options:
            return "option"
        raise _unknown_words(
            given, "Write pass or fail (also yes or no, correct or incorrect), or a score from 0 to 1."
        )
    wrong = [label for label in given if not isinstance(label.verdict, float)]
    issues = [Issue(f"`{label.verdict}` is neither pass, fail nor a score.", label.where, label.id) for label in wrong]
    issues += [
        Issue(f"A score lies between 0 and 1, as the metric's does, not at {label.verdict:g}.", label.where, label.id)
        for label in numbers
        if isinstance(label.verdict, float) and not 0 <= label.verdict <= 1
    ]
    if issues:
        raise DatasetError(sort_issues(issues))
    return "verdict" if all(label.verdict in (0.0, 1.0) for label in numbers) else "score"


def read_label_sheet(path: str | Path, *, columns: Columns | None = None) -> list[HumanLabel]:
    """Read the labels of a sheet, a line for each; lines without a verdict are passed over.

    The columns are `id`, `verdict` (or `label`), and if wanted `metric`, `criterion`, `annotator`,
    `inclusion_probability` and `stratum`, as `deemster labels sheet` writes them.

    Args:
        path: The sheet: .csv, .tsv or .xlsx.
        columns: Which column holds what, where its name does not say it.

    Raises:
        DatasetError: Something in the sheet is wrong; every issue is given with its line.
        MissingExtraError: It is a workbook, and openpyxl is not installed.
    """
    sheet = load_sheets({"labels": path}, columns)["labels"]
    reader = _LabelReader(sheet)
    return reader.read()


class _LabelReader:
    """Reads the lines of a sheet, and collects what is wrong."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        found = sheet.find_verdicts()
        if found is None:
            sheet.require(sheet.verdict_role, "verdicts")
        self._verdicts = found or 0
        self._issues: list[Issue] = []

    def read(self) -> list[HumanLabel]:
        """Every label, in the order of the lines.

        Raises:
            DatasetError: Something is wrong; every issue is given.
        """
        sheet, labels = self._sheet, []
        seen: dict[tuple[str, str | None, str, int], str] = {}
        for line, cells in sheet.lines:
            text = cells[self._verdicts].strip()
            name, where = sheet.cell(cells, "id"), sheet.where(line)
            if not text:
                continue
            if not name:
                self._issues.append(Issue("The id is blank.", where))
                continue
            label = HumanLabel(
                name,
                self._subject(cells),
                sheet.cell(cells, "annotator"),
                read_verdict(text),
                self._probability(cells, where, name),
                sheet.other_cell(cells, _STRATUM) or None,
                where,
                self._repetition(cells, where, name),
                text,
                is_drawn=sheet.is_drawn(cells),
            )
            key = label.id, label.subject, label.annotator, label.repetition
            if key in seen:
                hint = "" if label.annotator else " Several people need a column `annotator`."
                self._issues.append(Issue(f"The label is given twice, first at {seen[key]}.{hint}", where, name))
            seen.setdefault(key, where)
            labels.append(label)
        if not labels and not self._issues:
            sheet.reading.refuse("No line holds a verdict.")
        if self._issues:
            raise sheet.reading.error(sort_issues(self._issues))
        return labels

    def _subject(self, cells: list[str]) -> str | None:
        # Where both columns are there, `criterion` is found as the criterion, and `metric` is left.
        parts = [self._sheet.other_cell(cells, "metric"), self._sheet.cell(cells, "criterion")]
        return "/".join(part for part in parts if part) or None

    def _probability(self, cells: list[str], where: str, name: str) -> float | None:
        if _PROBABILITY not in self._sheet.others:
            return None
        text = self._sheet.other_cell(cells, _PROBABILITY)
        number = parse_number(text) if text else None
        if text and (number is None or not 0 < number <= 1):
            self._issues.append(Issue(f"An inclusion probability lies above 0 and up to 1, not `{text}`.", where, name))
        return number

    def _repetition(self, cells: list[str], where: str, name: str) -> int:
        """The repetition that people saw, where the sheet says it, as one that the viewer exports does."""
        text = self._sheet.other_cell(cells, "repetition") or "0"
        if not text.isdecimal():
            self._issues.append(Issue(f"A repetition is a whole number from 0 on, not `{text}`.", where, name))
            return 0
        return int(text)


class JoinedLabels(NamedTuple):
    """The labels of one output by all people.

    Attributes:
        truth: What they say together: the majority, or the mean of scores; None where they are tied.
        by_annotator: What each of them says.
        probability: How probable it was that the sample is drawn.
        stratum: The stratum in which it was drawn.
    """

    truth: float | str | None
    by_annotator: Mapping[str, float | str]
    probability: float | None
    stratum: str | None


def join_labels(labels: Iterable[HumanLabel], kind: LabelKind) -> dict[tuple[str, int], JoinedLabels]:
    """The labels of each sample and repetition, joined over annotators; abstentions are left out.

    Args:
        labels: The labels of one metric.
        kind: What people gave.
    """
    groups: dict[tuple[str, int], list[HumanLabel]] = {}
    for label in labels:
        if label.verdict is not None:
            groups.setdefault((label.id, label.repetition), []).append(label)
    return {key: _join(group, kind) for key, group in groups.items()}


def _join(labels: Sequence[HumanLabel], kind: LabelKind) -> JoinedLabels:
    said = {label.annotator: label.verdict for label in labels if label.verdict is not None}
    values = list(said.values())
    truth: float | str | None
    if kind == "score":
        truth = sum(float(value) for value in values) / len(values)
    else:
        counts = sorted(((values.count(value), str(value), value) for value in set(values)), reverse=True)
        truth = None if len(counts) > 1 and counts[0][0] == counts[1][0] else counts[0][2]
    return JoinedLabels(truth, said, labels[0].probability, labels[0].stratum)


def labels_by_subject(
    labels: Iterable[HumanLabel], subjects: Mapping[str, str], *, default: str | None
) -> dict[str, list[HumanLabel]]:
    """The labels of each metric or criterion that they are about.

    Args:
        labels: The labels.
        subjects: What a label may be about, by every name of it.
        default: What a label is about that does not say; None where it must say.

    Raises:
        DatasetError: A label names something unknown, or nothing; all are listed.
    """
    found: dict[str, list[HumanLabel]] = {}
    issues: dict[str, Issue] = {}
    for label in labels:
        name = label.subject or default
        if name is None:
            known = "Add a column `metric`, or name one with `--metric`."
            issues.setdefault("", Issue(f"The labels do not say which metric they are about. {known}", label.where))
        elif name not in subjects:
            known = did_you_mean(name, dict.fromkeys(subjects.values()))
            issues.setdefault(name, Issue(f"The run has no metric or criterion `{name}`. {known}", label.where))
        else:
            found.setdefault(subjects[name], []).append(label)
    if issues:
        raise DatasetError(list(issues.values()))
    return found
