"""Reads the items of a spreadsheet with their labels or verdicts; without a rubric, derives one from the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from deemster.datasets._spreadsheet_columns import TEXTS, Sheet, fold_name
from deemster.datasets.label_words import ABSTAIN_WORDS, FAIL_WORDS, PASS_WORDS, parse_number
from deemster.errors import Issue, RubricError, did_you_mean, list_names, nearest
from deemster.formats.document import Document, sort_issues
from deemster.formats.item_files import ITEMS, ItemFile
from deemster.formats.json_values import Path
from deemster.rubrics.criterion import Criterion, Option
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.verdicts import CANNOT_ASSESS, VERDICTS, fold_label

# What a log of judges has where a call gave no verdict.
FAILED_CALL: Final = "error"
MOST_LABELS: Final = 20
# The only judge of a sheet that names none, and the only criterion; the key of labels that no annotator is named for.
_JUDGE, _CRITERION, _TRUTH = "judge", "verdict", ""


class Layout(NamedTuple):
    """Where the verdicts of a sheet stand.

    Attributes:
        sheet: The sheet.
        wide: Columns by criterion; empty where a line holds one verdict.
        verdicts: The column of verdicts where a line holds one.
        criterion: The criterion of all lines where no column names it.
    """

    sheet: Sheet
    wide: Mapping[str, int]
    verdicts: int | None = None
    criterion: str | None = None

    def criteria(self) -> list[str]:
        """The names of the criteria in order."""
        if self.wide or self.verdicts is None:
            return list(self.wide)
        if self.criterion is not None:
            return [self.criterion]
        cells = (self.sheet.cell(cells, "criterion") for _, cells in self.sheet.lines)
        return list(dict.fromkeys(cell for cell in cells if cell))

    def verdicts_of(self, cells: list[str]) -> Iterator[tuple[str, str]]:
        """The verdicts of a line that are not blank, each after its criterion."""
        if self.verdicts is None:
            named = [(name, cells[at]) for name, at in self.wide.items()]
        else:
            named = [(self.criterion or self.sheet.cell(cells, "criterion"), cells[self.verdicts])]
        return ((name, text.strip()) for name, text in named if text.strip())

    def metadata(self) -> list[int]:
        """The columns that hold neither verdicts nor anything that has a name of its own."""
        used = {*self.sheet.roles.values(), *self.wide.values(), self.verdicts}
        return [at for at, name in enumerate(self.sheet.header) if name and at not in used]


def lay_out(sheets: Sequence[Sheet], rubric: Rubric | None) -> list[Layout]:
    """Find the criteria of sheets: a column for each, or a line for each.

    A sheet with a column of criteria, or one whose column of verdicts the user has named, has a line for each verdict.
    In any other the columns with the names of the rubric hold the verdicts. Without a rubric all columns that are left
    do; where there are two sheets, those that both have.

    Raises:
        InputError: A sheet has no column of verdicts.
    """
    if rubric is not None:
        return [_lay_out_by_rubric(sheet, rubric) for sheet in sheets]
    long = {at: _long_layout(sheet) for at, sheet in enumerate(sheets) if _is_long(sheet)}
    known: list[set[str]] = [
        {fold_name(name) for name in long[at].criteria()} if at in long else set(sheet.others)
        for at, sheet in enumerate(sheets)
    ]
    shared = set.intersection(*known)
    return [long.get(at) or _wide_layout(sheet, shared) for at, sheet in enumerate(sheets)]


def _is_long(sheet: Sheet) -> bool:
    return "criterion" in sheet.roles or sheet.verdict_role in sheet.roles


def _long_layout(sheet: Sheet, criterion: str = _CRITERION) -> Layout:
    at = sheet.find_verdicts()
    if at is None:
        sheet.require(sheet.verdict_role, "verdicts")
    return Layout(sheet, {}, at, None if "criterion" in sheet.roles else criterion)


def _wide_layout(sheet: Sheet, shared: set[str]) -> Layout:
    wide = {sheet.header[at]: at for name, at in sheet.others.items() if name in shared}
    return Layout(sheet, wide) if wide else _long_layout(sheet)


def _lay_out_by_rubric(sheet: Sheet, rubric: Rubric) -> Layout:
    if _is_long(sheet):
        return _long_layout(sheet, rubric.names[0])
    wide = {name: sheet.others[fold_name(name)] for name in rubric.names if fold_name(name) in sheet.others}
    if not wide and len(rubric.names) == 1 and sheet.find_verdicts() is not None:
        return _long_layout(sheet, rubric.names[0])
    left = [sheet.header[at] for at in sheet.others.values() if at not in wide.values()]
    missing = [name for name in rubric.names if name not in wide]
    guesses = {name: guess for name in missing if (guess := nearest(name, left)) is not None}
    if guesses:
        where = sheet.where(1)
        raise sheet.reading.error(
            [Issue(f"The criterion `{name}` has no column. Is it `{guess}`?", where) for name, guess in guesses.items()]
        )
    return Layout(sheet, wide)


def require_verdicts(layouts: Iterable[Layout], rubric: Rubric) -> None:
    """Refuse a sheet without a column of any criterion.

    Raises:
        InputError: There is one.
    """
    for layout in layouts:
        if not layout.wide and layout.verdicts is None:
            names = list_names(name for name in layout.sheet.header if name)
            said = f"No column is a criterion of the rubric, which has {list_names(rubric.names)}."
            layout.sheet.reading.refuse(f"{said} The columns are {names}.", line=1)


def derive_rubric(layouts: Sequence[Layout]) -> Rubric:
    """The rubric that the values of spreadsheets fit; the first one has its criteria.

    A criterion with only yes and no, MET and UNMET, true and false, pass and fail, or 1 and 0 is binary. Other numbers
    are a scale; more than 20 different ones are a range. Anything else is a choice without an order; it has no part in
    the score, for nothing says what its labels are worth.

    Raises:
        InputError: No criterion is in all sheets, or one has too many different values, or only one.
    """
    names: dict[str, str] = {}
    for name in layouts[0].criteria():
        names.setdefault(fold_name(name), name)
    if not set.intersection(*({fold_name(name) for name in layout.criteria()} for layout in layouts)):
        first, *others = layouts
        them = " and ".join(f"`{layout.sheet.reading.file}`" for layout in others)
        first.sheet.reading.refuse(f"No criterion stands both here and in {them}. {_list_criteria(layouts)}")
    values: dict[str, dict[str, str]] = {key: {} for key in names}
    for layout in layouts:
        for _, cells in layout.sheet.lines:
            for name, text in layout.verdicts_of(cells):
                if (
                    fold_name(name) in values
                    and fold_label(text) not in ABSTAIN_WORDS
                    and not _is_failed_call(layout.sheet, text)
                ):
                    values[fold_name(name)].setdefault(fold_label(text), text)
    found = [_derive_criterion(name, list(values[key].values())) for key, name in names.items()]
    issues = [Issue(each, layouts[0].sheet.where(1)) for each in found if isinstance(each, str)]
    if issues:
        raise layouts[0].sheet.reading.error(issues)
    return Rubric(tuple(each for each in found if isinstance(each, Criterion)))


def _list_criteria(layouts: Iterable[Layout]) -> str:
    return " ".join(f"`{each.sheet.reading.file}` has {list_names(each.criteria(), limit=8)}." for each in layouts)


def _derive_criterion(name: str, values: list[str]) -> Criterion | str:
    """A criterion that fits the values, or why there is none."""
    words = {fold_label(value) for value in values}
    if words <= PASS_WORDS | FAIL_WORDS:
        return Criterion(name, name=name, weight=1)
    if len(words) < 2:
        return f"All verdicts on `{name}` are `{values[0]}`, so its other labels are not known. Give a `--rubric`."
    numbers = {parse_number(value) for value in values}
    scale = sorted(number for number in numbers if number is not None)
    if None in numbers or len(scale) < 2:
        if len(words) > MOST_LABELS:
            other = f"Give a `--rubric`, or say that it is no criterion: `--columns metadata={name}`"
            return f"`{name}` has {len(words)} different values, more than {MOST_LABELS}. {other}."
        return Criterion(name, name=name, weight=0, scale_type="nominal", options=tuple(map(Option, values)))
    low, high = scale[0], scale[-1]
    if len(scale) > MOST_LABELS:
        return Criterion(name, name=name, weight=1, minimum=low, maximum=high)
    options = tuple(Option(f"{number:g}", (number - low) / (high - low)) for number in scale)
    return Criterion(name, name=name, weight=1, scale_type="ordinal", options=options)


def _is_failed_call(sheet: Sheet, text: str) -> bool:
    return sheet.kind == "verdicts" and fold_label(text) == FAILED_CALL


class _Item(NamedTuple):
    """What the lines of one item say.

    Attributes:
        line: Its first line.
        facts: Its texts and tags.
        metadata: The values of each other column.
        said: What each annotator or judge says on each criterion, in the order of the lines; with the lines.
        errors: What went wrong, by judge, with the lines.
    """

    line: int
    facts: dict[str, str]
    metadata: dict[str, set[str]]
    said: dict[str, list[list[tuple[Any, int]]]]
    errors: list[tuple[str, str, int]]


class _SheetReader:
    """Reads the items of one sheet, and collects what is wrong."""

    def __init__(self, layout: Layout, rubric: Rubric, *, is_derived: bool = False) -> None:
        self._is_derived = is_derived
        self._layout = layout
        self._sheet = layout.sheet
        self._rubric = rubric
        self._criteria = {fold_name(name): at for at, name in enumerate(rubric.names)}
        self._criteria |= {name: at for at, name in enumerate(rubric.names)}
        self._spellings: dict[tuple[int, str], Any] = {}
        self.issues: list[Issue] = []
        self.items: dict[str, _Item] = {}

    def read(self, by: str, alone: str) -> None:
        """Read all lines.

        Args:
            by: The column that says who gave a verdict.
            alone: Who gave it where there is no such column.
        """
        sheet, others = self._sheet, self._layout.metadata()
        for line, cells in sheet.lines:
            name = sheet.cell(cells, "id")
            if not name:
                self._add("The id is blank.", line)
                continue
            item = self.items.setdefault(name, _Item(line, {}, {}, {}, []))
            for role in (*TEXTS, "tags"):
                text = sheet.cell(cells, role)
                if text and item.facts.setdefault(role, text) != text:
                    self._add(f"The {role} differs from the one in an earlier line of this item.", line, name)
            for at in others:
                if cell := cells[at].strip():
                    item.metadata.setdefault(sheet.header[at], set()).add(cell)
            who = sheet.cell(cells, by) if by in sheet.roles else alone
            if error := sheet.cell(cells, "error"):
                item.errors.append((who, error, line))
                continue
            verdicts = list(self._layout.verdicts_of(cells))
            if verdicts and not who and by in sheet.roles:
                self._add(f"The {by} is blank.", line, name)
            elif verdicts:
                self._read_verdicts(
                    verdicts, item.said.setdefault(who, [[] for _ in self._rubric.criteria]), line, name
                )

    def _read_verdicts(
        self, verdicts: Iterable[tuple[str, str]], said: list[list[tuple[Any, int]]], line: int, name: str
    ) -> None:
        for criterion, text in verdicts:
            at = self._criteria.get(criterion, self._criteria.get(fold_name(criterion)))
            if at is None and self._is_derived and criterion:
                # Another sheet has the criteria, and nothing is to be compared with this one.
                continue
            if at is None:
                self._add(self._unknown_criterion(criterion), line, name)
                continue
            try:
                said[at].append((self._spell(at, text), line))
            except RubricError as error:
                self._add(error.issues[0].message, line, name)

    def _unknown_criterion(self, criterion: str) -> str:
        if not criterion:
            return "The criterion is blank."
        return f"`{criterion}` is no criterion of the rubric. {did_you_mean(criterion, self._rubric.names)}"

    def _spell(self, at: int, text: str) -> Any:
        """A verdict as the rubric spells it, or the failure of a call."""
        key = at, text
        if key not in self._spellings:
            self._spellings[key] = _spell_verdict(self._rubric.criteria[at], text, self._sheet)
        return self._spellings[key]

    def one_label_each(self, name: str, cells: list[list[tuple[Any, int]]]) -> list[str | None]:
        """The labels that one annotator gave an item, by criterion; a second one is an issue."""
        for criterion, said in zip(self._rubric.names, cells, strict=True):
            for _, line in said[1:]:
                first = self._sheet.where(said[0][1])
                hint = "" if "annotator" in self._sheet.roles else " Several people need a column `annotator`."
                self._add(f"The label of `{criterion}` is given twice, first at {first}.{hint}", line, name)
        return [said[0][0] if said else None for said in cells]

    def add_failed_calls(self, name: str) -> None:
        """Let an error of one judge, where others answered, be a failed call on every criterion."""
        item = self.items[name]
        for who, message, line in item.errors:
            if not who:
                self._add("An error without a judge stands beside verdicts on this item.", line, name)
                continue
            for cell in item.said.setdefault(who, [[] for _ in self._rubric.criteria]):
                cell.append(({"failure": "infrastructure", "message": message}, line))

    def _add(self, message: str, line: int, name: str | None = None) -> None:
        self.issues.append(Issue(message, self._sheet.where(line), name))

    def finish(self, items: list[dict[str, Any]], facts: Mapping[str, Any]) -> ItemFile:
        """The file that the items make up.

        Raises:
            InputError: Something is wrong; every issue is given.
        """
        reading = self._sheet.reading
        if self.issues:
            raise reading.error(sort_issues(self.issues))
        lines = [item.line for item in self.items.values()]

        def document(path: Path) -> tuple[Document, Path]:
            at = path[1] if len(path) > 1 and path[0] == ITEMS else None
            line = lines[at] if isinstance(at, int) else 1
            return Document(None, file=reading.file, places={}, first=line), ()

        return ItemFile({"rubric": self._rubric, **facts, ITEMS: items}, document, reading)

    def head(self, name: str) -> dict[str, Any]:
        """What is known of an item beside its verdicts. What differs between its lines is no metadata of the item."""
        item = self.items[name]
        tags = _read_tags(item.facts.get("tags", ""))
        metadata = {key: next(iter(cells)) for key, cells in item.metadata.items() if len(cells) == 1}
        return {"id": name, "tags": tags, "metadata": metadata}


def _read_tags(text: str) -> list[str]:
    """Tags that a vertical bar separates, or a JSON list of them, as the CSV of a report has it.

    >>> _read_tags("a| b"), _read_tags('["a"]'), _read_tags("")
    (['a', 'b'], ['a'], [])
    """
    if text.startswith("["):
        try:
            return msgspec.json.decode(text, type=list[str])
        except (msgspec.DecodeError, UnicodeEncodeError):
            pass
    return [tag.strip() for tag in text.split("|") if tag.strip()]


def _spell_verdict(criterion: Criterion, text: str, sheet: Sheet) -> Any:
    spellings = [text]
    if fold_label(text) in ABSTAIN_WORDS:
        spellings.append(CANNOT_ASSESS)
    if criterion.kind == "binary" and fold_label(text) in PASS_WORDS | FAIL_WORDS:
        spellings.append(VERDICTS[0] if fold_label(text) in PASS_WORDS else VERDICTS[1])
    if (number := parse_number(text)) is not None:
        spellings.append(f"{number:g}")
    refused: RubricError | None = None
    for spelling in spellings:
        try:
            criterion.code(spelling)
        except RubricError as error:
            refused = refused or error
        else:
            return spelling
    if refused is not None and not _is_failed_call(sheet, text):
        raise refused
    return {"failure": "parse"}


def read_label_items(layout: Layout, rubric: Rubric) -> ItemFile:
    """The items of a sheet of labels, as a rubric dataset has them.

    A line holds what one annotator says of an item; where no column names annotators, it is the ground truth. Without
    a column of submissions all are empty. Labels of samples that were picked are left out beside those of samples that
    were drawn at random; without such, or where some were likelier to be drawn than others, the items count as chosen.

    Raises:
        InputError: Something in the sheet is wrong; every issue is given with its line.
    """
    sheet = layout.sheet
    labelled = [(line, cells) for line, cells in sheet.lines if any(layout.verdicts_of(cells))]
    picked = {line for line, cells in labelled if not sheet.is_drawn(cells)}
    if len(picked) < len(labelled):
        sheet = sheet._replace(lines=[(line, cells) for line, cells in sheet.lines if line not in picked])
    is_chosen = (picked and len(picked) == len(labelled)) or not sheet.drawn_evenly()

    reader = _SheetReader(layout._replace(sheet=sheet), rubric)
    reader.read("annotator", _TRUTH)
    has_annotators = "annotator" in sheet.roles
    items = []
    for name, item in reader.items.items():
        labels = {who: reader.one_label_each(name, cells) for who, cells in item.said.items()}
        entry = reader.head(name) | {"submission": item.facts.get("submission", "")}
        entry |= {key: item.facts[key] for key in TEXTS[1:] if key in item.facts}
        if has_annotators:
            entry["annotations"] = labels
        elif labels:
            entry["ground_truth"] = labels[_TRUTH]
        items.append(entry)
    return reader.finish(items, {"sampling": "chosen"} if is_chosen else {})


def read_verdict_items(layout: Layout, rubric: Rubric, *, is_derived: bool = False) -> ItemFile:
    """The items of a sheet of verdicts, as a votes file has them.

    A line holds what one judge says of an item. Further lines of the same judge about it are repeats. An item with
    errors and no verdict failed as a whole; where other judges answered, the call of that judge failed.

    Args:
        layout: Where the verdicts stand.
        rubric: What they are about.
        is_derived: Whether the labels decided what the criteria are, so that verdicts on any other are passed over.

    Raises:
        InputError: Something in the sheet is wrong; every issue is given with its line.
    """
    reader = _SheetReader(layout, rubric, is_derived=is_derived)
    reader.read("judge", _JUDGE)
    items = []
    judges: dict[str, None] = {}
    for name, item in reader.items.items():
        entry = reader.head(name)
        if item.errors and not item.said:
            entry["error"] = item.errors[0][1]
        else:
            reader.add_failed_calls(name)
            entry["votes"] = {who: [_vote_cell(cell) for cell in cells] for who, cells in item.said.items()}
        judges |= dict.fromkeys(item.said)
        items.append(entry)
    if not judges and not reader.issues:
        layout.sheet.reading.refuse("No line holds a verdict.")
    facts = {"schema_version": "deemster.votes.v1", "judges": [{"id": judge} for judge in judges]}
    return reader.finish(items, facts)


def _vote_cell(said: list[tuple[Any, int]]) -> Any:
    """A verdict; a list where the judge was asked again; None where it was not asked."""
    labels = [label for label, _ in said]
    return labels if len(labels) > 1 else labels[0] if labels else None
