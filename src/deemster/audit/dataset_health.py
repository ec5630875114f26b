"""The health of a dataset: copies, contradictions, leaks, flaky samples, item discrimination, small cohorts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.audit.dataset_audit_report import dataset_audit_sections
from deemster.formats.canonical_json import json_text
from deemster.records import Sample
from deemster.results.run_summary import cohort_label, cohort_sizes
from deemster.stats import PairedNoise, certifiable_margin, fisher_interval, samples_to_certify, wilson
from deemster.stats.confidence_interval import interval_ends
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

DATASET_AUDIT_SCHEMA: Final = "deemster.dataset_audit.v1"
_Bools: TypeAlias = NDArray[np.bool_]
_WORD = re.compile(r"[^\W_]+")
# A shorter expected output occurs in inputs by chance.
_SHORTEST_LEAK = 8
_BLOCK = 1024
_LEAST_EXECUTIONS = 5


class SimilarSamples(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two samples with the same, or nearly the same, input.

    Attributes:
        first: The earlier one.
        second: The later one.
        kind: `exact` where the words of the inputs are the same, else `near`.
        similarity: The cosine of their vectors.
        same_expected: Whether the words of their expected outputs are the same; otherwise they contradict each other.
    """

    first: str
    second: str
    kind: Literal["exact", "near"]
    similarity: float
    same_expected: bool


class SampleHistory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stored runs say of a sample.

    Attributes:
        id: The sample.
        n: Its executions.
        passed: Those in which every metric passed.
        rate: The share.
        low: The lower end of its interval (Wilson).
        high: The upper end.
        is_flaky: Whether executions by the same target both passed and failed.
        discrimination: The correlation, over executions, of passing with the share of other samples that pass.
        discrimination_low: The lower end of its interval (Fisher).
        discrimination_high: The upper end.
        reason: Why there is no discrimination.
    """

    id: str
    n: int
    passed: int
    rate: float
    low: float
    high: float
    is_flaky: bool
    discrimination: float | None = None
    discrimination_low: float | None = None
    discrimination_high: float | None = None
    reason: str | None = None


class DisputedSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample about which people and metrics, or people among each other, disagree.

    Attributes:
        id: The sample.
        metric: The metric that was labelled.
        people_pass: Labels that say pass.
        people_fail: Labels that say fail.
        against_mark: Labels that differ from the mark of the metric.
    """

    id: str
    metric: str
    people_pass: int
    people_fail: int
    against_mark: int


class CohortSize(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cohort that is too small to certify a margin.

    Attributes:
        cohort: The cohort.
        samples: How many samples it has.
        certifiable: The smallest margin that they certify where nothing flips.
        needed: How many samples certify the margin where nothing flips.
    """

    cohort: str
    samples: int
    certifiable: float | None
    needed: int | None


class SuggestedLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample that a person should look at next.

    Attributes:
        id: The sample.
        because: Why.
    """

    id: str
    because: str


class DatasetAudit(Rendered, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The health of a dataset.

    Attributes:
        dataset: The dataset's name.
        source: The file, or the run.
        samples: How many samples.
        runs: The stored runs that were looked at.
        executions: How many executions each sample has there.
        embedding: The model that finds near copies; None where only exact ones were looked for.
        near: The similarity from which two inputs are near copies.
        margin: The margin that cohorts are held to.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        similar: Copies; those whose expected outputs differ are contradictions.
        leaks: Samples whose input holds the expected output.
        always_pass: Samples that every execution passes.
        always_fail: Samples that no execution passes.
        flaky: Samples that executions by the same target both pass and fail.
        disputed: Samples about which people and metrics disagree.
        labelled: How many samples people labelled in these runs.
        small_cohorts: Cohorts that cannot certify the margin.
        items: What stored runs say of each sample.
        label_next: Samples that a person should look at next.
        notes: What a reader must know before believing the numbers.
    """

    schema_version: str = DATASET_AUDIT_SCHEMA
    dataset: str
    source: str
    samples: int
    runs: tuple[str, ...]
    executions: int
    embedding: str | None
    near: float
    margin: float
    confidence: float
    seed: int
    similar: tuple[SimilarSamples, ...]
    leaks: tuple[str, ...]
    always_pass: tuple[str, ...]
    always_fail: tuple[str, ...]
    flaky: tuple[str, ...]
    disputed: tuple[DisputedSample, ...]
    labelled: int
    small_cohorts: tuple[CohortSize, ...]
    items: tuple[SampleHistory, ...]
    label_next: tuple[SuggestedLabel, ...]
    notes: tuple[str, ...]

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return dataset_audit_sections(self)


class SampleText(NamedTuple):
    """What a sample says, as words.

    Attributes:
        id: The sample.
        input: The words of its input.
        expected: The words of its expected output; None where it has none.
    """

    id: str
    input: str
    expected: str | None


def sample_text(sample: Sample) -> SampleText:
    """The words of a sample: folded in case, without punctuation."""
    expected = None if sample.expected_output is None else _words(_text(sample.expected_output))
    return SampleText(sample.id, _words(" ".join(_leaves(sample.input))), expected)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a JSON value."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield str(value)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFC", text).casefold()))


def find_similar(
    texts: Sequence[SampleText], vectors: NDArray[np.float32] | None, *, near: float
) -> Iterator[SimilarSamples]:
    """The samples whose inputs are the same, or nearly the same.

    Each copy is named beside the first sample with the same words. Inputs with different numbers are not near copies.

    Args:
        texts: The samples.
        vectors: A vector of the input of each; None for exact copies alone.
        near: The cosine from which inputs are nearly the same.
    """
    firsts: dict[str, int] = {}
    for place, text in enumerate(texts):
        first = firsts.setdefault(text.input, place)
        if first != place:
            yield _pair(texts[first], text, "exact", 1.0)
    if vectors is None:
        return
    places = np.array(list(firsts.values()), dtype=np.int64)
    units = _units(vectors[places])
    numbers = [tuple(sorted(word for word in text.input.split() if word.isdigit())) for text in texts]
    for start in range(0, len(places), _BLOCK):
        cosines = units[start : start + _BLOCK] @ units[start:].T
        rows, columns = np.nonzero(cosines >= near)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            first, second = int(places[start + row]), int(places[start + column])
            if row < column and numbers[first] == numbers[second]:
                yield _pair(texts[first], texts[second], "near", min(1.0, float(cosines[row, column])))


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; one without length stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))


def _pair(first: SampleText, second: SampleText, kind: Literal["exact", "near"], similarity: float) -> SimilarSamples:
    return SimilarSamples(
        first=first.id,
        second=second.id,
        kind=kind,
        similarity=similarity,
        same_expected=first.expected == second.expected,
    )


def find_leaks(texts: Iterable[SampleText]) -> Iterator[str]:
    """The samples whose input holds the words of the expected output, where these are at least eight characters."""
    for text in texts:
        if text.expected and len(text.expected) >= _SHORTEST_LEAK and f" {text.expected} " in f" {text.input} ":
            yield text.id


def sample_histories(
    ids: Sequence[str], passed: _Bools, targets: Sequence[str | None], *, confidence: float
) -> Iterator[SampleHistory]:
    """What stored executions say of each sample.

    The discrimination of a sample is its corrected item-total correlation: over executions, the point-biserial
    correlation of its passing with the share of the other samples that pass. Near 0 it tells nothing of what the others
    tell; below 0 it passes where the others fail, and its expected output may be wrong.

    Args:
        ids: The samples.
        passed: By sample and execution, whether every metric passed.
        targets: The target of each execution.
        confidence: The level of the intervals.

    Reference: F. M. Lord, M. R. Novick, Statistical Theories of Mental Test Scores (1968), chapter 15.
    """
    n, k = passed.shape
    marks = passed.astype(np.float64)
    others = (marks.sum(axis=0) - marks) / max(1, n - 1)
    own, rest = marks - marks.mean(axis=1, keepdims=True), others - others.mean(axis=1, keepdims=True)
    scale = np.sqrt((own**2).sum(axis=1) * (rest**2).sum(axis=1))
    known = scale > 1e-12
    values = np.divide((own * rest).sum(axis=1), scale, out=np.zeros(n), where=known)
    groups = [np.array([one == target for one in targets]) for target in dict.fromkeys(targets)]
    flaky = np.zeros(n, dtype=np.bool_)
    for group in groups:
        flaky |= passed[:, group].any(axis=1) & ~passed[:, group].all(axis=1)
    for place, name in enumerate(ids):
        count = int(passed[place].sum())
        low, high = interval_ends(wilson(count, k, confidence=confidence).interval) or (0.0, 1.0)
        value = float(np.clip(values[place], -1, 1)) if known[place] and k >= _LEAST_EXECUTIONS else None
        ends = None if value is None else fisher_interval(value, k, method="pearson", confidence=confidence)
        yield SampleHistory(
            id=name,
            n=k,
            passed=count,
            rate=count / k,
            low=low,
            high=high,
            is_flaky=bool(flaky[place]),
            discrimination=value,
            discrimination_low=None if ends is None else ends.lower,
            discrimination_high=None if ends is None else ends.upper,
            reason=None if value is not None else _no_discrimination(count, k),
        )


def _no_discrimination(count: int, k: int) -> str:
    if k < _LEAST_EXECUTIONS:
        return f"{k} executions are too few"
    return "it never changes" if count in (0, k) else "all other samples together never change"


def small_cohorts(tags: Iterable[Sequence[str]], *, margin: float, confidence: float) -> Iterator[CohortSize]:
    """The cohorts that cannot certify a margin, even where nothing flips.

    Args:
        tags: The tags of each sample.
        margin: The margin.
        confidence: The one-sided confidence.
    """
    needed = samples_to_certify(margin, PairedNoise(flip_rate=0.0), confidence=confidence)
    for tag, samples in cohort_sizes(tags).items():
        certifiable = certifiable_margin(samples, confidence=confidence)
        if certifiable is None or certifiable > margin:
            yield CohortSize(cohort=cohort_label(tag), samples=samples, certifiable=certifiable, needed=needed)


def suggest_labels(
    similar: Iterable[SimilarSamples],
    disputed: Iterable[DisputedSample],
    items: Iterable[SampleHistory],
    *,
    labelled: frozenset[str],
) -> Iterator[SuggestedLabel]:
    """The samples that a person should look at next, the most pressing first, each once.

    Args:
        similar: Copies.
        disputed: Samples about which people and metrics disagree.
        items: What stored runs say of each sample.
        labelled: Samples that people labelled already.
    """
    reasons: dict[str, str] = {}
    for pair in similar:
        if not pair.same_expected:
            reasons.setdefault(pair.second, f"its expected output is not that of `{pair.first}`, whose input is alike")
    for one in disputed:
        reasons.setdefault(one.id, f"people and `{one.metric}` disagree")
    known = list(items)
    for item in known:
        if item.discrimination_high is not None and item.discrimination_high < 0:
            reasons.setdefault(item.id, "it passes where other samples fail")
    for item in known:
        if item.n > 1 and not item.passed and item.id not in labelled:
            reasons.setdefault(item.id, f"none of its {item.n} executions passes: the sample or a metric may be wrong")
    for item in sorted(known, key=lambda each: (abs(each.rate - 0.5), each.id)):
        if item.is_flaky and item.id not in labelled:
            reasons.setdefault(item.id, f"{item.passed} of its {item.n} executions pass")
    for name, because in reasons.items():
        yield SuggestedLabel(id=name, because=because)
