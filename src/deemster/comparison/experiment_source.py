"""The variants of an experiment whose runs are stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from deemster.comparison.compare_columns import DEFAULT_SETTINGS, ComparisonSettings
from deemster.comparison.experiment import Experiment, MissingVariant, VariantSource, build_experiment
from deemster.comparison.stored_source import StoredSource
from deemster.errors import StorageError, StoreError
from deemster.store import RunRow, Store


class _VariantFacts(msgspec.Struct, frozen=True):
    """What a store keeps of a run about its variant.

    Attributes:
        levels: By factor of a grid, the level that it has.
        place: Its place in the suite.
    """

    levels: dict[str, str] = {}
    place: int = 0


def stored_experiment(
    store: Store,
    experiment: str,
    *,
    missing: Sequence[MissingVariant] = (),
    settings: ComparisonSettings = DEFAULT_SETTINGS,
) -> Experiment:
    """What the stored runs of an experiment show.

    Args:
        store: Where they are.
        experiment: Its id.
        missing: Variants that have no run.
        settings: How the runs are compared.

    Raises:
        ReportError: No variant has anything to be compared.
        StoreError: A run cannot be read.
    """
    rows = variant_rows(store, experiment)
    sources = [VariantSource(name, _facts(row).levels, StoredSource(store, row)) for name, row in rows.items()]
    missing = [variant for variant in missing if variant.name not in rows]
    suite = next(iter(rows.values())).suite if rows else None
    return build_experiment(sources, id=experiment, name=suite, missing=missing, settings=settings)


def named_experiment(store: Store, name: str) -> str | None:
    """The experiment that a name means; None where it means one run.

    Raises:
        StoreError: It means neither, or the store cannot be read.
    """
    try:
        store.run(name)
    except StorageError:
        raise
    except StoreError:
        experiment = store.find_experiment(name)
        if experiment is None:
            raise
        return experiment
    return None


def variant_rows(store: Store, experiment: str) -> dict[str, RunRow]:
    """The runs of an experiment by the name of their variant, in the order of the suite.

    Raises:
        StoreError: A run cannot be read.
    """
    rows = sorted(store.runs(experiment=experiment, kind="run"), key=lambda row: _facts(row).place)
    return {str(row.facts.get("label")): row for row in rows}


def _facts(row: RunRow) -> _VariantFacts:
    try:
        return msgspec.convert(row.facts.get("variant", {}), _VariantFacts)
    except msgspec.ValidationError as error:
        raise StoreError(f"run `{row.id}`: What is stored of its variant cannot be read: {error}") from None
