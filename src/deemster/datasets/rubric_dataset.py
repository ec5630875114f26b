"""The rubric dataset: submissions, the rubric that judges them, and the labels of people."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from deemster.datasets._spreadsheet_columns import Columns, load_sheets
from deemster.datasets._spreadsheet_items import lay_out, read_label_items
from deemster.datasets.fingerprint import Canonical, digest, rfc8785
from deemster.datasets.label_codebook import Codebook, consensus, read_codebook
from deemster.datasets.rubric_items import Labels, RubricItem, Submission, check_item, item_dict
from deemster.datasets.votes_format import Sampling
from deemster.errors import DatasetError, Issue, RubricError, list_names, visible
from deemster.formats.document import Reading
from deemster.formats.item_files import (
    ITEMS,
    IssueList,
    ItemFile,
    pause_garbage_collection,
    read_item_file,
    repeated_ids,
)
from deemster.formats.json_values import to_json_value
from deemster.formats.read_table import TABLES
from deemster.formats.write_rows import write_rows
from deemster.rubrics.rubric_definition import Rubric

SCHEMA: Final = "deemster.rubric_dataset.v1"
FORMATS = ("json", "yaml", "jsonl")
TEXTS = ("name", "prompt", "reference_submission")
# What is known of the dataset beside its items and its rubric.
FACTS = (*TEXTS, "cluster", "sampling")


class RubricDatasetFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A rubric dataset: items and the rubric they are judged by."""

    schema_version: Literal["deemster.rubric_dataset.v1"] = SCHEMA
    name: str | None = None
    prompt: str | None = None
    rubric: Any = None
    reference_submission: str | None = None
    cluster: str | None = None
    sampling: Sampling | None = None
    items: Annotated[list[RubricItem], Meta(min_length=1)]


class RubricDataset:
    """Items with the rubric they are judged by, checked, and in the order of their file.

    Attributes:
        items: The items; every one has an id, and its labels are spelt as the rubric spells them.
        name: What the dataset is called.
        prompt: What was asked for.
        rubric: What items are judged by that have no rubric of their own.
        reference_submission: A good answer.
        cluster: The metadata key whose equal values belong together, such as a document; None where items stand alone.
        sampling: How the labelled items were drawn; None where the file does not say.

    Raises:
        DatasetError: An item or a fact is wrong; every issue is given.
    """

    items: tuple[RubricItem, ...]
    name: str | None
    prompt: str | None
    rubric: Rubric | None
    reference_submission: str | None
    cluster: str | None
    sampling: Sampling | None

    def __init__(
        self,
        items: Iterable[RubricItem | Mapping[str, Any]],
        *,
        name: str | None = None,
        prompt: str | None = None,
        rubric: Rubric | Mapping[str, Any] | None = None,
        reference_submission: str | None = None,
        cluster: str | None = None,
        sampling: Sampling | None = None,
    ) -> None:
        given = {
            "name": name,
            "prompt": prompt,
            "rubric": rubric if isinstance(rubric, Rubric) else to_json_value(rubric),
            "reference_submission": reference_submission,
            "cluster": cluster,
            "sampling": sampling,
            ITEMS: [item_dict(item) if isinstance(item, RubricItem) else to_json_value(item) for item in items],
        }
        root = {key: value for key, value in given.items() if value is not None}
        self._take(ItemFile(root, None, Reading("dataset", error=DatasetError)))

    @classmethod
    def load(
        cls, path: str | FilePath, *, rubric: Rubric | None = None, columns: Columns | None = None
    ) -> RubricDataset:
        """Read a rubric dataset from JSON, YAML or JSONL, or its items from a spreadsheet: CSV, TSV or .xlsx.

        A spreadsheet has the columns `id` and `submission` and may have `prompt`, `reference_submission`, `description`
        and `tags` (split at a vertical bar). Columns with the names of criteria hold labels, those of one annotator a
        line where there is a column `annotator`. Any other column is metadata.

        Args:
            path: The file.
            rubric: Takes the place of the rubric in the file; items that have one of their own keep it. Labels stand by
                place, so where there are any, the criteria of both have the same names in one order. A spreadsheet has
                no rubric, so it needs one here.
            columns: Which column of a spreadsheet holds what, where its name does not say it, such as
                `{"id": "Nr.", "submission": "Answer"}`; `metadata` may name several.

        Raises:
            DatasetError: The file or something in it is wrong; every issue is given with its place.
            MissingExtraError: The file is a workbook, and openpyxl is not installed.
        """
        if FilePath(path).suffix.lower().removeprefix(".") in TABLES:
            return _load_spreadsheet(path, rubric, columns)
        if columns is not None:
            raise DatasetError(Issue("Only a spreadsheet has columns.", str(path)))
        self = cls.__new__(cls)
        reading = Reading(str(path), error=DatasetError, keeps_not_finite=True)
        with pause_garbage_collection():
            file = read_item_file(path, reading, known=FORMATS, item_key="submission")
            own = file.root.get("rubric") if isinstance(file.root, dict) else None
            if rubric is not None and isinstance(file.root, dict):
                file = file._replace(root={**file.root, "rubric": rubric})
            self._take(file)
        if rubric is not None and own is not None:
            self._require_same_criteria(rubric, own, str(path))
        return self

    # The name that users of autorubric look for.
    from_file = load

    def _require_same_criteria(self, rubric: Rubric, own: Any, file: str) -> None:
        """Refuse labels that were given by other criteria than those they would be read by.

        Raises:
            DatasetError: They were.
        """
        try:
            names = Rubric.load(own).names
        except RubricError:
            # A rubric that cannot be read has no names to compare.
            return
        if names != rubric.names and any(
            item.rubric is None and (item.ground_truth or item.annotations) for item in self
        ):
            message = (
                f"The labels are about the criteria {list_names(names)}, and the rubric has {list_names(rubric.names)}."
            )
            raise DatasetError(Issue(f"{message} Both need the same, in one order.", file))

    def _take(self, file: ItemFile) -> None:
        root, items = _read(file)
        self._fill(items, root)

    def _fill(self, items: list[RubricItem], root: Mapping[str, Any]) -> None:
        """Take items and facts that are checked."""
        self.items = tuple(items)
        self.name, self.prompt, self.reference_submission = (root.get(key) for key in TEXTS)
        self.rubric, self.cluster, self.sampling = (root.get(key) for key in ("rubric", "cluster", "sampling"))
        self._positions = {item.id: at for at, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[RubricItem]:
        return iter(self.items)

    def __getitem__(self, index: int) -> RubricItem:
        return self.items[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RubricDataset):
            return NotImplemented
        return all(getattr(self, key) == getattr(other, key) for key in ("items", "rubric", *FACTS))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<RubricDataset {self.name!r}: {len(self)} items>"

    @functools.cached_property
    def rubrics(self) -> tuple[Rubric, ...]:
        """The rubric of every item, by position."""
        return tuple(item.rubric or self.rubric for item in self.items)  # type: ignore[misc]

    @functools.cached_property
    def truths(self) -> tuple[Labels | None, ...]:
        """The ground truth of every item, by position: as stated, else the consensus of its annotators, else None."""
        books: dict[int, Codebook] = {}
        found: list[Labels | None] = []
        for item, rubric in zip(self.items, self.rubrics, strict=True):
            if item.ground_truth is not None or not item.annotations:
                found.append(item.ground_truth)
                continue
            if id(rubric) not in books:
                books[id(rubric)] = Codebook(rubric)
            book = books[id(rubric)]
            rows = [book.quick(list(entries)) or book.cells(entries) for entries in item.annotations.values()]
            columns = zip(rubric.criteria, zip(*rows, strict=True), strict=True)
            found.append(tuple(book.labels(consensus(criterion, given) for criterion, given in columns)))
        return tuple(found)

    def grading_fingerprint(self, item: RubricItem | str) -> str:
        """The SHA-256 of all that a judge can see of an item: prompt, submission, reference and rubric.

        Args:
            item: An item of this dataset, or its id.

        Raises:
            DatasetError: There is no such item.
        """
        name = item.id if isinstance(item, RubricItem) else item
        at = self._positions.get(name)
        if at is None:
            raise DatasetError(f"There is no item `{name}` in the dataset.")
        held, rubric = self.items[at], self.rubrics[at]
        submission = held.submission
        if isinstance(submission, Submission):
            submission = {"output": submission.output, "thinking": submission.thinking}  # type: ignore[assignment]
        reference = held.reference_submission
        return digest(
            {
                "prompt": self.prompt if held.prompt is None else held.prompt,
                "reference_submission": self.reference_submission if reference is None else reference,
                "rubric": self._canonical_rubrics[id(rubric)],
                "submission": submission,
            }
        )

    @functools.cached_property
    def _canonical_rubrics(self) -> dict[int, Canonical]:
        different = {id(rubric): rubric for rubric in self.rubrics}
        return {key: Canonical(rfc8785(rubric.to_dict()).decode()) for key, rubric in different.items()}

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash that changes with everything a judge can see, and with every label, tag and metadata."""
        rows = [
            [
                item.id,
                self.grading_fingerprint(item),
                item.ground_truth,
                item.annotations,
                item.tags,
                item.metadata,
            ]
            for item in sorted(self.items, key=lambda item: str(item.id))
        ]
        return digest(rows)

    def split(
        self,
        train: float,
        *,
        stratify: bool = True,
        cluster: str | Mapping[str, str | float] | None = None,
        seed: int = 0,
    ) -> tuple[RubricDataset, RubricDataset]:
        """Two datasets that share no item: one to take examples from or to tune on, and the rest.

        The first has exactly the size asked for. Where items belong to clusters, which are never divided, it has that
        size if some of the clusters come to it together, and otherwise the nearest size that some come to, the smaller
        of two that are as near.

        Args:
            train: How many items the first has, or which share of them.
            stratify: Whether both are to hold each label of each criterion in the same proportion, by iterative
                stratification (Sechidis et al. 2011).
            cluster: The key of the metadata that names an item's cluster, or clusters by item id.
            seed: What everything random derives from; the order of the items has no part in it.

        Raises:
            DatasetError: The size is no size of a part, the seed no seed, or an item has no label to stratify by or no
                cluster.
        """
        from deemster.datasets._dataset_split import split_positions  # noqa: PLC0415 - few who read a dataset divide it

        chosen = split_positions(self, train, stratify=stratify, cluster=cluster, seed=seed)
        first = [item for at, item in enumerate(self.items) if at in chosen]
        rest = [item for at, item in enumerate(self.items) if at not in chosen]
        return self._part(first), self._part(rest)

    def _part(self, items: list[RubricItem]) -> RubricDataset:
        part = RubricDataset.__new__(RubricDataset)
        part._fill(items, {key: getattr(self, key) for key in ("rubric", *FACTS)})  # noqa: SLF001 - one of its own
        return part

    def to_dict(self) -> dict[str, Any]:
        """The map of a rubric dataset file: keys in fixed order, defaults left out."""
        return {**_header(self), ITEMS: list(_rows(self))}

    def save(self, path: str | FilePath) -> None:
        """Write the dataset as JSON, YAML or JSONL, by extension; a reader never sees half a file.

        Raises:
            DatasetError: The extension is none of these, or the file cannot be written.
        """
        write_rows(path, _header(self), _rows(self), key=ITEMS, known=FORMATS, error=DatasetError)


def _load_spreadsheet(path: str | FilePath, rubric: Rubric | None, columns: Columns | None) -> RubricDataset:
    if rubric is None:
        raise DatasetError(Issue("A spreadsheet has no rubric. Give one, such as `--rubric rubric.yaml`.", str(path)))
    sheet = load_sheets({"labels": path}, columns)["labels"]
    sheet.require("submission", "submissions")
    (layout,) = lay_out([sheet], rubric)
    return read_dataset_items(read_label_items(layout, rubric))


def read_dataset_items(file: ItemFile) -> RubricDataset:
    """A rubric dataset of items that were read from another kind of file.

    Raises:
        DatasetError: Something in it is wrong; every issue is given with its place.
    """
    self = RubricDataset.__new__(RubricDataset)
    with pause_garbage_collection():
        self._take(file)
    return self


def _read(file: ItemFile) -> tuple[dict[str, Any], list[RubricItem]]:
    """The facts of a root, its rubric read, and its items; raise every issue at once."""
    found = IssueList(file)
    root = file.root if isinstance(file.root, dict) else {}
    rows = root.get(ITEMS)
    rows = [_with_id(row, at) for at, row in enumerate(rows)] if isinstance(rows, list) else []
    decoded = found.decode(_without_rubrics(file.root, rows), RubricDatasetFile)
    shared: Codebook | None = None
    has_rubric = root.get("rubric") is not None
    cluster = root.get("cluster")
    if has_rubric:
        shared, issues = read_codebook(root["rubric"], ("rubric",), file)
        found.issues += issues
    if rows and not has_rubric and not any(isinstance(row, dict) and row.get("rubric") is not None for row in rows):
        # One issue, not one for every item.
        found.add((), "There is no rubric: neither the dataset nor any item has one.")
        has_rubric = True
    items = []
    for at, row in enumerate(rows):
        if not isinstance(row, dict):
            continue
        found.item = row["id"] if isinstance(row["id"], str) else None
        book = shared
        if row.get("rubric") is not None:
            book, issues = read_codebook(row["rubric"], (ITEMS, at, "rubric"), file)
            found.issues += [issue._replace(sample=found.item) for issue in issues]
        elif not has_rubric:
            found.add((ITEMS, at), "There is no rubric: neither the item nor the dataset has one.")
        item = check_item(row, decoded.items[at] if decoded else None, book, (ITEMS, at), found)
        if item is not None:
            items.append(item)
            if cluster is not None and cluster not in item.metadata:
                found.add(
                    (ITEMS, at),
                    f"cluster: it has no `metadata.{visible(str(cluster), limit=60)}`, by which items are clustered.",
                )
    found.issues += repeated_ids(rows, ITEMS, file.where)
    found.refuse()
    return {**root, "rubric": shared.rubric if shared else None}, items


def _without_rubrics(root: Any, rows: list[Any]) -> Any:
    """A root whose rubrics, which have a shape of their own, are null."""
    if not isinstance(root, dict):
        return root
    rows = [{**row, "rubric": None} if isinstance(row, dict) and "rubric" in row else row for row in rows]
    plain = {**root, ITEMS: rows} if isinstance(root.get(ITEMS), list) else root
    return {**plain, "rubric": None} if "rubric" in root else plain


def _with_id(row: Any, at: int) -> Any:
    """A row with the id that the dataset gives where the row has none."""
    if not isinstance(row, dict) or row.get("id") is not None:
        return row
    return {**row, "id": f"item-{at + 1:04d}"}


def _header(dataset: RubricDataset) -> dict[str, Any]:
    header: dict[str, Any] = {"schema_version": SCHEMA}
    header |= {key: getattr(dataset, key) for key in FACTS if getattr(dataset, key) is not None}
    if dataset.rubric is not None:
        header["rubric"] = dataset.rubric.to_dict()
    return header


def _rows(dataset: RubricDataset) -> Iterator[dict[str, Any]]:
    for item in dataset.items:
        row = item_dict(item)
        if isinstance(item.rubric, Rubric):
            row["rubric"] = item.rubric.to_dict()
        yield row
