"""The run of an improvement: its progress file is a store that keeps the model calls, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deemster import __version__
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ConfigurationError, Issue
from deemster.runs.run_identity import digest, plain_json, run_id
from deemster.runs.run_lifecycle import RunDefinition, StoredRun, new_token, open_run
from deemster.runs.run_storage import RunStorage
from deemster.runs.run_timer import RunTimer
from deemster.store import RunFacts, open_store


@contextmanager
def open_improvement_run(
    path: Path | None,
    dataset: RubricDataset,
    identity: Mapping[str, Any],
    *,
    seed: int,
    resume: bool,
    timer: RunTimer,
) -> Iterator[StoredRun | None]:
    """Begin or resume an improvement in its progress file; None where it has none.

    A resumed improvement asks everything again, and finds in the file what was answered.

    Args:
        path: The progress file.
        dataset: Items with people's labels.
        identity: Everything that the answers depend on; an improvement of another identity is refused.
        seed: The seed of everything random.
        resume: Whether to continue from the file; otherwise it must not exist.
        timer: When it began.

    Raises:
        ConfigurationError: The file exists and `resume` is false, or it is about something else.
        StoreError: It is no progress file, or cannot be read or written.
    """
    if path is None:
        yield None
        return
    if path.exists() and not resume:
        message = (
            "The file is there from work that stopped. Go on from it with `--resume` (`resume=True`), or remove it."
        )
        raise ConfigurationError(Issue(message, str(path)))

    plain = plain_json(identity)
    facts = RunFacts(
        id=run_id(timer.started, digest(plain)),
        kind="improvement",
        dataset=dataset.name or "items",
        fingerprint=dataset.fingerprint,
        seed=seed,
        samples=0,
        started_at=timer.started_at,
        tool_version=__version__,
        identity=plain,
        facts={"token": new_token()},
    )
    with open_store(path) as store:
        earlier = store.runs(kind="improvement", limit=1)
        resumed = earlier[0].id if earlier else None
        with open_run(RunDefinition(facts, tuple), RunStorage(store), resumed=resumed, timer=timer) as run:
            yield run
