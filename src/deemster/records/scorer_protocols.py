"""The protocols `Metric` and `Scorer`, which user code may implement, and what reports say of a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from deemster.records.frozen_json import FrozenDict
from deemster.records.marks import Mark
from deemster.records.model_requests import Script
from deemster.records.output import Output
from deemster.records.sample import Sample


class Where(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The samples that a metric applies to: those that meet all of this.

    Attributes:
        tags: The sample has one of these tags.
        has: The sample has a value for each of these: a key of its metadata, `expected_output`, or a path such as
            `input.context`. In `citations|citation_evidence` one of the two will do.
        metadata: By key of its metadata, the sample has one of these values.
        auto: Whether this was `auto`: `has` is then what the metric reads, and no sample need have it.
    """

    tags: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    metadata: Mapping[str, tuple[Any, ...]] = FrozenDict()
    auto: bool = False


class MetricCard(NamedTuple):
    """What reports say of a metric beside its numbers.

    Attributes:
        name: How reports call it.
        spec: The canonical spec, or the import path of user code; without `where`, which stands beside it.
        identity: Spec and version: two runs compare a metric only where it is the same. `where` is no part of it: it
            chooses samples, and the mark of a sample is the same with and without it.
        family: One of the families, or `custom`.
        quotes: Details that may repeat text of a sample or output; None where the metric does not say: all may.
        threshold: Its pass mark, where it has one for all marks.
        higher_is_better: Whether a higher score is a better one.
        parts: The criteria that its marks tell of, where it judges by several.
        roles: The roles of the models that it asks.
        where: The samples that it applies to; None for all.
    """

    name: str
    spec: str
    identity: str
    family: str
    quotes: frozenset[str] | None
    threshold: float | None = None
    higher_is_better: bool = True
    parts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    where: Where | None = None


@runtime_checkable
class Metric(Protocol):
    """Scores an output without a judge.

    A metric may also have:

    - ``score_many(samples, outputs)``, which equals ``score`` pair by pair;
    - ``check(sample)``, which returns the issues of a sample before anything runs (``errors.Issue``);
    - ``version``, part of its identity;
    - ``quotes``, the names of details that may repeat text of a sample or output;
    - ``parts``, the names of criteria. Its marks then have the detail `criteria`: a map of each name to its `value`,
      `agreement`, `abstained` and `failed`;
    - ``where``, the samples that it applies to: a map with `tags`, `has` or `metadata`, as in a suite, or `auto`;
    - ``needs``, what a sample must have for it, as in `has`: `where: auto` applies it to those samples.
    """

    @property
    def name(self) -> str:
        """How reports call it."""
        ...

    def score(self, sample: Sample, output: Output) -> Mark:
        """Mark one output."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Scores an output by asking a model: its script yields rounds of requests and is sent the replies.

    A scorer may also have ``script_many(samples, outputs)``, one script for a batch that ends with a mark for each,
    and everything a ``Metric`` may have beside ``score``.
    """

    @property
    def name(self) -> str:
        """How reports call it."""
        ...

    def script(self, sample: Sample, output: Output) -> Script:
        """Mark one output, asking as it goes."""
        ...
