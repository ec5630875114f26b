"""Few-shot examples for graders: labelled submissions from a training split, never the item itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from deemster.datasets.label_codebook import Codebook
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ConfigurationError, show_value
from deemster.formats.schema_validation import decode_struct
from deemster.judges.grading_case import GradingCase, parts_digest, submission_output, text_digest
from deemster.rubrics.criterion import MISSING, Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import is_missing


class FewShotSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Few-shot examples."""

    n: Annotated[int, Meta(ge=1)] = 3
    balance: bool = True
    reasons: bool = False
    cluster: Annotated[str | Mapping[str, Any] | None, Meta(title="a key of the metadata or a map")] = None
    seed: int = 0


class FewShotEntry(FewShotSettings, frozen=True, kw_only=True):
    """Few-shot examples."""

    train: Annotated[str, Meta(title="the path of a rubric dataset with labels")]


class FewShot(FewShotSettings, frozen=True, eq=False):
    """How judges get examples that people have labelled.

    Attributes:
        train: Where examples come from; labelled items of a split that is not graded.
        n: How many examples a judge sees.
        balance: Whether labels take turns; if one runs out of examples, the others fill up.
        reasons: Whether the reasons of the ground truth are shown.
        cluster: The key of the metadata that names an item's cluster, or clusters by item id; no example comes from the
            item's own cluster.
        seed: The seed of the choice.

    Raises:
        ConfigurationError: A setting is none of these, or no item of the split has a label; all issues are listed.
    """

    train: RubricDataset

    def __post_init__(self) -> None:
        decode_struct(self, FewShotSettings, error=ConfigurationError, path=("few_shot",))
        if not isinstance(self.train, RubricDataset):
            raise ConfigurationError(f"few_shot.train is a `RubricDataset`, not {show_value(self.train)[:60]}.")
        if not any(label is not None for truth in self.train.truths for label in truth or ()):
            raise ConfigurationError("No item of `train` has a label, and examples need one.")

    def cluster_of(self, name: str, metadata: Mapping[str, Any]) -> Any:
        """The cluster of an item; None if it has none."""
        if self.cluster is None:
            return None
        return metadata.get(self.cluster) if isinstance(self.cluster, str) else self.cluster.get(name)


class LabelledSubmission(NamedTuple):
    """A labelled submission.

    Attributes:
        id: The item's id.
        output: What judges see of it.
        hash: The SHA-256 of that.
        cluster: Its cluster, where it has one.
        rubric: What it was labelled by.
        codes: Its labels.
        reasons: Why, for every criterion.
    """

    id: str
    output: str
    hash: str
    cluster: Any
    rubric: Rubric
    codes: tuple[int | float, ...]
    reasons: tuple[str | None, ...]


class FewShotExample(NamedTuple):
    """An example with the labels that a question is about.

    Attributes:
        output: What judges see of it.
        codes: The label of each criterion of the question; `MISSING` if it has none.
        reasons: Why, for each of them.
    """

    output: str
    codes: tuple[int | float, ...]
    reasons: tuple[str | None, ...]

    def restrict_to(self, places: Iterable[int]) -> FewShotExample:
        """The same example with the labels of some of the criteria."""
        chosen = tuple(places)
        return FewShotExample(
            self.output, tuple(self.codes[at] for at in chosen), tuple(self.reasons[at] for at in chosen)
        )


class ExampleSelector:
    """Chooses examples: always the same ones for an item, whatever else is graded.

    Args:
        settings: How examples are chosen.
        auto_na: Whether judges are offered an abstention that the author gave no option for.
    """

    def __init__(self, settings: FewShot, *, auto_na: bool) -> None:
        self._settings, self._auto_na = settings, auto_na
        self._examples = tuple(_examples(settings))
        self._queues: dict[tuple[Criterion, str], list[list[_Ranked]]] = {}
        self._by_rubric: dict[tuple[Rubric, str], tuple[list[_Ranked], list[_Ranked]]] = {}

    def choose_for_criterion(self, case: GradingCase, criterion: Criterion, judge: str) -> list[FewShotExample]:
        """The examples for one criterion, in the order they are shown.

        Args:
            case: What is graded.
            criterion: What it is judged by.
            judge: Who judges.
        """
        key = (criterion, judge)
        if key not in self._queues:
            self._queues[key] = self._queued(criterion, judge)
        queues = [iter(queue) for queue in self._queues[key]]
        chosen: list[_Ranked] = []
        # A turn gives each label one example; a label without further examples drops out.
        while queues and len(chosen) < self._settings.n:
            left = []
            for queue in queues:
                found = next((each for each in queue if not self._is_of(case, each.example)), None)
                if found is not None:
                    chosen.append(found)
                    left.append(queue)
            queues = left
        return [each.shown for each in sorted(chosen[: self._settings.n], key=_by_rank)]

    def choose_for_rubric(self, case: GradingCase, judge: str) -> list[FewShotExample]:
        """The examples for all criteria that judges answer; each is chosen for the labels that it adds to those before.

        Args:
            case: What is graded.
            judge: Who judges.
        """
        key = (case.rubric, judge)
        if key not in self._by_rubric:
            ranked = self._ranked_by_rubric(case.rubric, judge)
            self._by_rubric[key] = (ranked, _covering(ranked, self._settings))
        ranked, usual = self._by_rubric[key]
        # The usual choice stands unless it holds an example of the item itself.
        if any(self._is_of(case, each.example) for each in usual):
            usual = _covering([each for each in ranked if not self._is_of(case, each.example)], self._settings)
        return [each.shown for each in sorted(usual, key=_by_rank)]

    def _queued(self, criterion: Criterion, judge: str) -> list[list[_Ranked]]:
        """Examples of each label in their hashed order, labels by their first example; one queue without balance."""
        queues: dict[str, list[_Ranked]] = {}
        ranked = []
        for example in self._examples:
            place = _place_of(criterion, example.rubric)
            if place is not None and self._is_offered(criterion, example.codes[place]):
                rank = parts_digest(self._settings.seed, criterion.name, judge, example.id)
                ranked.append(_Ranked(rank, example, _shown(example, [place], reasons=self._settings.reasons)))
        for each in sorted(ranked, key=_by_rank):
            # As text, since a dict takes the code 1 and the number 1.0 for one key.
            queues.setdefault(repr(each.shown.codes[0]) if self._settings.balance else "", []).append(each)
        return list(queues.values())

    def _ranked_by_rubric(self, rubric: Rubric, judge: str) -> list[_Ranked]:
        ranked = []
        criteria = [criterion for criterion in rubric.criteria if criterion.check is None]
        for example in self._examples:
            places = [_place_of(criterion, example.rubric) for criterion in criteria]
            if all(place is None for place in places):
                continue
            found = _shown(example, places, reasons=self._settings.reasons)
            offered = tuple(
                code if self._is_offered(criterion, code) else MISSING
                for criterion, code in zip(criteria, found.codes, strict=True)
            )
            if not all(map(is_missing, offered)):
                rank = parts_digest(self._settings.seed, "", judge, example.id)
                ranked.append(_Ranked(rank, example, found._replace(codes=offered)))
        return sorted(ranked, key=_by_rank)

    def _is_offered(self, criterion: Criterion, code: float) -> bool:
        if is_missing(code) or criterion.check is not None:
            return False
        if criterion.kind == "numeric":
            return self._auto_na or isinstance(code, float)
        return self._auto_na or not criterion.options or code < len(criterion.options)

    def _is_of(self, case: GradingCase, example: LabelledSubmission) -> bool:
        """Whether an example is the item itself, its copy, or of its cluster."""
        if example.id == case.id or example.hash == case.hash:
            return True
        return example.cluster is not None and example.cluster == self._settings.cluster_of(case.id, case.metadata)


class _Ranked(NamedTuple):
    """An example at its hashed place."""

    rank: bytes
    example: LabelledSubmission
    shown: FewShotExample


def _by_rank(ranked: _Ranked) -> bytes:
    return ranked.rank


def _examples(settings: FewShot) -> Iterator[LabelledSubmission]:
    train = settings.train
    books: dict[int, Codebook] = {}
    for item, rubric, truth in zip(train.items, train.rubrics, train.truths, strict=True):
        if truth is None or all(label is None for label in truth):
            continue
        book = books.setdefault(id(rubric), Codebook(rubric))
        codes = tuple(book.cells(truth))
        output = submission_output(item)
        reasons = item.ground_truth_reasons or (None,) * len(codes)
        cluster = settings.cluster_of(str(item.id), item.metadata)
        yield LabelledSubmission(str(item.id), output, text_digest(output), cluster, rubric, codes, reasons)


def _place_of(criterion: Criterion, rubric: Rubric) -> int | None:
    """The place of the same criterion in a rubric: of that name, requirement and labels; None if it has none."""
    for place, other in enumerate(rubric.criteria):
        if other is criterion or (
            (other.name, other.requirement, other.labels) == (criterion.name, criterion.requirement, criterion.labels)
        ):
            return place
    return None


def _shown(example: LabelledSubmission, places: Sequence[int | None], *, reasons: bool) -> FewShotExample:
    codes = tuple(MISSING if place is None else example.codes[place] for place in places)
    why = tuple(None if place is None or not reasons else example.reasons[place] for place in places)
    return FewShotExample(example.output, codes, why)


def _covering(ranked: Iterable[_Ranked], settings: FewShot) -> list[_Ranked]:
    """Examples chosen one by one, each for the labels it adds; of equal ones the first."""
    left = list(ranked)
    if not settings.balance:
        return left[: settings.n]
    chosen: list[_Ranked] = []
    seen: set[tuple[int, int | float]] = set()
    while left and len(chosen) < settings.n:
        best = max(left, key=lambda each: len(_pairs(each) - seen))
        left.remove(best)
        chosen.append(best)
        seen |= _pairs(best)
    return chosen


def _pairs(ranked: _Ranked) -> set[tuple[int, int | float]]:
    return {(place, code) for place, code in enumerate(ranked.shown.codes) if code != MISSING}
