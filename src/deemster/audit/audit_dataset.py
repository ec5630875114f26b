"""Audits a dataset: bad samples in its text and in stored runs, and the part of it that keeps a gate's power."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.audit.audit_gate import stored_runs
from deemster.audit.dataset_health import (
    DatasetAudit,
    DisputedSample,
    SampleHistory,
    SampleText,
    find_leaks,
    find_similar,
    sample_histories,
    sample_text,
    small_cohorts,
    suggest_labels,
)
from deemster.audit.simulated_runs import ExecutionPool
from deemster.datasets import Dataset
from deemster.datasets.human_labels import FAIL, PASS
from deemster.errors import ConfigurationError, plural
from deemster.evaluation.check_file import find_kind
from deemster.evaluation.suite import load_suite
from deemster.evaluation.suite_parts import suite_dataset
from deemster.formats.read_file import EXTENSIONS
from deemster.formats.schema_validation import OpenShare, Seed, Share, decode_struct
from deemster.gate.read_gate import BaselineRules, GateRules
from deemster.models.model_client import ModelFailure
from deemster.records import Sample
from deemster.report.build_report import to_sample
from deemster.report.report_settings import stored_settings
from deemster.results.run_columns import RunColumns
from deemster.store import Store
from deemster.store.open_and_migrate import DEFAULT
from deemster.store.open_runs import is_run_file, open_runs

MARGIN = 0.05
# Every pair is looked at, so that more would take minutes.
_MOST_EMBEDDED = 20_000


class AuditedDataset(NamedTuple):
    """The dataset that is audited.

    Attributes:
        name: Its name.
        source: The file, or the run.
        samples: Its samples.
        hashes: Their row hashes.
    """

    name: str
    source: str
    samples: Sequence[Sample]
    hashes: Sequence[str]


class HealthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a dataset is audited.

    Attributes:
        near: The cosine from which two inputs are near copies.
        margin: The margin that cohorts are held to; None for that of the newest run's gate, else 0.05.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.

    Raises:
        ConfigurationError: One is outside of its limits.
    """

    near: Share = 0.95
    margin: OpenShare | None = None
    confidence: OpenShare = 0.95
    seed: Seed = 0

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)


def find_dataset(
    dataset_or_run: str | Path, store: str | Path | None, opened: ExitStack, *, names: Sequence[str]
) -> tuple[AuditedDataset, Store | None, list[str]]:
    """The dataset of a file or of a stored run, the store where there is one, and the runs that are named there.

    Args:
        dataset_or_run: The file, or the run.
        store: Where runs are stored; None for `.deemster/runs.db`.
        opened: Closes the store.
        names: The runs to look at. Where none is named, a file can be audited though nothing was ever run.

    Raises:
        DatasetError: The file cannot be read.
        StoreError: There is no such store or run, or it cannot be read.
    """
    # A file that is not there is told as such, and not as a run.
    path = Path(dataset_or_run)
    is_file = path.suffix.lower() in EXTENSIONS if not path.is_file() else not is_run_file(path)
    place = str(DEFAULT if store is None else store)

    if not is_file:
        found, (name, *others) = opened.enter_context(open_runs(place, [str(path), *names]))
        return run_dataset(found, name), found, others
    if not names and "://" not in place and not Path(place).exists():
        return file_dataset(path), None, []

    found, others = opened.enter_context(open_runs(place, names))
    return file_dataset(path), found, others


def file_dataset(file: str | Path) -> AuditedDataset:
    """The dataset of a file, or of the suite that names one.

    Args:
        file: The file.

    Raises:
        InputError: It cannot be read.
    """
    is_suite = find_kind(str(file)) == "suite"
    dataset = suite_dataset(load_suite(file, calls_target=False)) if is_suite else Dataset.load(file)
    return AuditedDataset(dataset.name, Path(dataset.path or file).name, list(dataset), dataset.row_hashes)


def run_dataset(store: Store, name: str) -> AuditedDataset:
    """The dataset as a stored run saw it.

    Args:
        store: Where the run is stored.
        name: The run.

    Raises:
        StoreError: There is no such run, or it cannot be read.
        ConfigurationError: The run does not keep the content of its samples.
    """
    row = store.run(name, kind="run")
    rows = list(store.samples(row.id))
    if any(sample.content is None for sample in rows):
        raise ConfigurationError(f"The run `{row.id}` does not keep inputs. Audit the dataset's file instead.")
    return AuditedDataset(
        row.dataset, f"run {row.id}", [to_sample(sample) for sample in rows], [sample.row_hash for sample in rows]
    )


def audit_dataset(
    dataset: AuditedDataset, store: Store | None, *, names: Sequence[str] = (), settings: HealthSettings
) -> DatasetAudit:
    """Look for samples of a dataset that mislead, tell nothing or contradict each other. Nothing is changed.

    Args:
        dataset: The dataset.
        store: Where its runs are stored; None where there is no store.
        names: The runs to look at; the newest of the dataset unless given.
        settings: How it is audited.

    Raises:
        StoreError: A run cannot be read.
    """
    texts = [sample_text(sample) for sample in dataset.samples]
    vectors, notes = _embed(texts)
    similar = list(find_similar(texts, vectors, near=settings.near))

    runs: list[RunColumns] = []
    if store is not None:
        runs, run_notes = stored_runs(store, None, names, dataset=None if names else dataset.name, is_alike=False)
        notes += run_notes
    if runs:
        notes += _edited(dataset, runs[0])
    else:
        notes.append("No complete run of the dataset is stored: nothing is known of how its samples behave.")
    items = _histories(runs, confidence=settings.confidence) if runs else []
    disputed, labelled = _disputes(store, runs)

    gate = _gate(store, runs, settings.margin)
    rules = gate.baseline or BaselineRules()
    margin = MARGIN if rules.margin is None else rules.margin
    tags = (sample.tags for sample in dataset.samples)
    cohorts = small_cohorts(tags, margin=margin, confidence=rules.confidence) if margin else ()

    return DatasetAudit(
        dataset=dataset.name,
        source=dataset.source,
        samples=len(texts),
        runs=tuple(run.run.id for run in runs),
        executions=sum(run.marks.repetitions for run in runs),
        embedding=None if vectors is None else "embedded",
        near=settings.near,
        margin=margin,
        confidence=settings.confidence,
        seed=settings.seed,
        similar=tuple(similar),
        leaks=tuple(find_leaks(texts)),
        always_pass=tuple(item.id for item in items if item.n > 1 and item.passed == item.n),
        always_fail=tuple(item.id for item in items if item.n > 1 and not item.passed),
        flaky=tuple(item.id for item in items if item.is_flaky),
        disputed=tuple(disputed),
        labelled=len(labelled),
        small_cohorts=tuple(cohorts),
        items=tuple(items),
        label_next=tuple(suggest_labels(similar, disputed, items, labelled=labelled)),
        notes=tuple(notes),
    )


def _histories(runs: Sequence[RunColumns], *, confidence: float) -> list[SampleHistory]:
    """What stored runs say of each sample of the newest one."""
    pool = ExecutionPool(runs)
    targets = [run.run.target for run in runs for _ in range(run.marks.repetitions)]
    ids = pool.reference.ids(list(range(pool.samples)))
    return list(sample_histories(ids, pool.passed, targets, confidence=confidence))


def _embed(texts: Sequence[SampleText]) -> tuple[NDArray[np.float32] | None, list[str]]:
    """Vectors of all inputs, or a note on why there are none."""
    if len(texts) > _MOST_EMBEDDED:
        return None, [f"Near copies are looked for among at most {_MOST_EMBEDDED:,} samples; exact ones among all."]
    from deemster.models.embedded_embedding import EmbeddedEmbedding  # noqa: PLC0415 - loads its weights' reader

    try:
        return EmbeddedEmbedding().embed_many([text.input for text in texts]).values, []
    except ModelFailure as failure:
        return None, [f"Near copies were not looked for: {failure}"]


def _gate(store: Store | None, runs: Sequence[RunColumns], margin: float | None) -> GateRules:
    """The gate of the newest run where it has a margin, else one of a margin alone."""
    gate = None
    if store is not None and runs:
        row = store.run(runs[0].run.id)
        gate = stored_settings(row).gate
    if gate is None or gate.baseline is None or gate.baseline.margin is None:
        return GateRules(baseline=BaselineRules(margin=MARGIN if margin is None else margin))
    return gate if margin is None else gate._replace(baseline=gate.baseline._replace(margin=margin))


def _edited(dataset: AuditedDataset, reference: RunColumns) -> list[str]:
    """A note on samples that the newest run does not have."""
    known = {digest.tobytes().hex() for digest in reference.digests}
    missing = sum(row_hash not in known for row_hash in dataset.hashes)
    if not missing:
        return []
    are = "is" if missing == 1 else "are"
    return [f"{plural(missing, 'sample')} {are} not in the newest run, so nothing is known of how they behave."]


def _disputes(store: Store | None, runs: Sequence[RunColumns]) -> tuple[list[DisputedSample], frozenset[str]]:
    """Samples whose labels differ from the marks or from each other, and all that people labelled."""
    counts: dict[tuple[str, str], list[int]] = {}
    for run in () if store is None else runs:
        names = {card.name: place for place, card in enumerate(run.marks.cards)}
        labels = [label for label in store.labels(run.run.id) if label.verdict in (PASS, FAIL)] if store else []
        for label, name in zip(labels, run.ids([label.position for label in labels]), strict=True):
            if label.metric in names and not label.criterion:
                mark = bool(run.marks.passed[label.position, label.repetition, names[label.metric]])
                said = label.verdict == PASS
                found = counts.setdefault((name, label.metric), [0, 0, 0])
                found[0 if said else 1] += 1
                found[2] += said is not mark
    disputed = [
        DisputedSample(id=name, metric=metric, people_pass=passed, people_fail=failed, against_mark=against)
        for (name, metric), (passed, failed, against) in sorted(counts.items())
        if against or (passed and failed)
    ]
    return disputed, frozenset(name for name, _ in counts)
