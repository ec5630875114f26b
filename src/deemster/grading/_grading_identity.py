"""The identity of a grading, and how a store begins or resumes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from deemster import __version__
from deemster.datasets.fingerprint import row_hash
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.rubric_items import item_dict
from deemster.engine.model_access import ModelAccess
from deemster.errors import list_names
from deemster.judges import metric_catalog as catalog
from deemster.judges.criterion_grader import CriterionGrader
from deemster.records import SampleContent, SampleFacts, SampleLabels
from deemster.report.stored_grading import GRADING_RUBRIC_FACT
from deemster.rubrics.rubric_definition import Rubric
from deemster.runs.run_identity import digest, model_identity, plain_json, run_id, source_digest
from deemster.runs.run_lifecycle import RunDefinition, new_token
from deemster.runs.run_timer import RunTimer
from deemster.store import RunFacts, RunRow, Store
from deemster.store.graded_items import GRADING_CARD

# The parts of a grading's identity that say what is judged.
_ABOUT_ITEMS = ("items", "rubric", "clusters")
# What people said of an item.
_LABELS = ("ground_truth", "ground_truth_reasons", "annotations")


def grading_identity(
    dataset: RubricDataset, grader: CriterionGrader, checks: Mapping[Any, Any], access: ModelAccess
) -> dict[str, Any]:
    """The identity of a grading: items, rubrics, settings with prompts, checks and models; labels do not count.

    Where judges see no examples of an item's own cluster, the clusters count too.
    """
    rubrics = {id(rubric): rubric for rubric in dataset.rubrics}.values()
    roles = sorted({role for each in (grader, *checks.values()) for role in each.roles})
    identity = {
        "items": digest([[item.id, dataset.grading_fingerprint(item)] for item in dataset.items]),
        "rubric": digest([rubric.to_dict() for rubric in rubrics]),
        "settings": grader.settings,
        "checks": {criterion.name: _check_identity(check) for criterion, check in checks.items()},
        "models": {role: model_identity(access.roles[role]) for role in roles},
    }
    few = grader.few_shot
    if few is not None and few.cluster is not None:
        identity["clusters"] = digest([few.cluster_of(str(item.id), item.metadata) for item in dataset.items])
    return plain_json(identity)


def _check_identity(check: Any) -> Any:
    """The identity of a metric that answers a criterion; users change their own without a new version."""
    source = source_digest(check.metric) if catalog.family(check.metric) == "custom" else None
    return check.identity if source is None else {"identity": check.identity, "source": source}


def judging_digest(identity: Mapping[str, Any]) -> str:
    """A digest of who judges, and how, without what is judged."""
    return digest({key: value for key, value in identity.items() if key not in _ABOUT_ITEMS})


def define_grading(
    dataset: RubricDataset, identity: Mapping[str, Any], *, name: str, seed: int, timer: RunTimer
) -> RunDefinition:
    """A grading as a store begins or resumes it.

    Args:
        dataset: What is graded.
        identity: The identity of the grading.
        name: What the dataset is called.
        seed: The grader's.
        timer: When it began.
    """
    # Items that have no rubric of their own are judged by that of the dataset: so a grading can be shown again.
    shown = {GRADING_RUBRIC_FACT: None if dataset.rubric is None else dataset.rubric.to_dict()}
    drawn = {key: value for key in ("cluster", "sampling") if (value := getattr(dataset, key)) is not None}

    facts = RunFacts(
        id=run_id(timer.started, digest([identity, timer.started_at])),
        kind="grading",
        dataset=name,
        fingerprint=dataset.fingerprint,
        seed=seed,
        samples=len(dataset),
        started_at=timer.started_at,
        tool_version=__version__,
        identity=identity,
        facts={"settings": identity["settings"], "token": new_token(), **shown, **drawn},
    )
    shape = partial(_shape_changes, dataset, identity)
    return RunDefinition(facts, partial(_samples, dataset), (GRADING_CARD,), shape)


def _shape_changes(dataset: RubricDataset, identity: Mapping[str, Any], store: Store, row: RunRow) -> list[str]:
    """Changes that `allow_changed` does not permit: other items, and votes of other judges."""
    changes = []
    if [stored.id for stored in store.samples(row.id)] != [item.id for item in dataset.items]:
        changes.append("The dataset has other items, or has them in another order.")

    before, now = (_panel(each["settings"]) for each in (row.identity, identity))
    if before != now:
        changes.append(f"The judges were {before}, and are {now}.")
    return changes


def _panel(settings: Mapping[str, Any]) -> str:
    """The judges of a grading, for a person."""
    names = list_names([judge["id"] for judge in settings["judges"]])
    return names if settings["cascade"] is None else f"{names} one after the other"


def _samples(dataset: RubricDataset) -> Iterator[SampleFacts]:
    """The items: what judges see of each is its input, and what people said of it what should come out."""
    shared = {"prompt": dataset.prompt, "reference_submission": dataset.reference_submission}
    for position, item in enumerate(dataset.items):
        fields = item_dict(item)
        if isinstance(rubric := fields.pop("rubric", None), Rubric):
            fields["rubric"] = rubric.to_dict()
        tags, metadata = fields.pop("tags", ()), fields.pop("metadata", {})
        labels = {name: fields.pop(name) for name in _LABELS if name in fields} or None
        del fields["id"]

        seen = {**{name: text for name, text in shared.items() if text is not None}, **fields}
        yield SampleFacts(
            position=position,
            id=str(item.id),
            row_hash=row_hash(seen, labels),
            labels=SampleLabels(tuple(tags), metadata),
            content=SampleContent(labels, seen),
        )
