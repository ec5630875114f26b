"""The labels that people gave outputs of a run: from a sheet, or from the viewer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deemster.datasets.human_labels import HumanLabel, drawn_labels, read_label_sheet, read_verdict
from deemster.errors import ConfigurationError, DatasetError
from deemster.store import Store

# What stands for the labels that people gave in the viewer.
VIEWER = "viewer"


def read_run_labels(
    labels: str | Path,
    stored: tuple[Store, str] | None,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    warn: Callable[[str], None],
) -> list[HumanLabel]:
    """The labels of a run.

    Args:
        labels: The sheet, or `viewer`.
        stored: The store of the run, and its id there; None for a report.
        columns: Which column of the sheet holds what, where its name does not say it.
        warn: Gets a warning where labels are left out, or were not drawn at random.

    Raises:
        DatasetError: The sheet cannot be read, or nobody has labelled the run in the viewer.
        ConfigurationError: The labels are in the viewer, and the run is a report.
        StoreError: They cannot be read.
    """
    if labels != VIEWER:
        return drawn_labels(read_label_sheet(labels, columns=columns), warn=warn)
    if stored is None:
        raise ConfigurationError("The labels of the viewer are in the store; name a stored run in place of a report.")
    return viewer_labels(*stored, warn=warn)


def viewer_labels(store: Store, run: str, *, warn: Callable[[str], None]) -> list[HumanLabel]:
    """The labels that people gave a stored run in the viewer: those drawn at random, where there are some.

    Args:
        store: Where the run is stored.
        run: Its id.
        warn: Gets a warning where labels are left out, or were not drawn at random.

    Raises:
        StoreError: They cannot be read.
        DatasetError: There are none.
    """
    given = [label for label in store.labels(run) if label.verdict is not None]
    if not given:
        raise DatasetError(f"Nobody has labelled the run `{run}` yet. Start: `deemster view --annotator YOUR_NAME`.")
    ids = [sample.id for sample in store.samples(run, content=False)]
    labels = [
        HumanLabel(
            ids[label.position],
            "/".join(part for part in (label.metric, label.criterion) if part) or None,
            label.author,
            read_verdict(label.verdict or ""),
            probability=label.probability,
            repetition=label.repetition,
            text=label.verdict or "",
            is_drawn=label.is_drawn,
        )
        for label in given
    ]
    return drawn_labels(labels, warn=warn)
