"""The records of a stored run: run, sample, scoring, baseline, label, counts of passes, owner of the lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec

from deemster.records import FrozenDict, MetricCard
from deemster.records.sample_facts import Count

# The fact that marks a run that came from a file: no model or code that it names may be called or loaded.
IMPORTED_FACT = "received"
RunKind: TypeAlias = Literal["run", "grading", "recording", "confirmation", "improvement"]


class RunTraits(NamedTuple):
    """What follows from the kind of a run; nothing else asks for the kind.

    Attributes:
        command: The command that makes such a run, and resumes it; None where nothing does.
        has_end: Whether its samples are known as it begins, so that it comes to an end; a recording goes on.
        has_metrics: Whether its marks are those of metrics, so that it has a report; a grading has verdicts.
        serves_a_run: Whether it only says more of another run, so that it is never the latest one.
        may_be_mixed: Whether it may be resumed although something changed, and is marked as mixed then.
    """

    command: str | None
    has_end: bool = True
    has_metrics: bool = True
    serves_a_run: bool = False
    may_be_mixed: bool = True


TRAITS: Mapping[str, RunTraits] = {
    "run": RunTraits("run"),
    "grading": RunTraits("grade", has_metrics=False),
    "recording": RunTraits(None, has_end=False),
    "confirmation": RunTraits(None, serves_a_run=True),
    "improvement": RunTraits("rubric improve", may_be_mixed=False),
}
# The tables whose rows hold texts of samples.
TextTable: TypeAlias = Literal["samples", "contents", "outputs", "marks"]
# PostgreSQL has no zero bytes in its text.
NO_ZERO = r"\A[^\x00]*\Z"
Plain: TypeAlias = Annotated[str, msgspec.Meta(pattern=NO_ZERO)]
Id: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f]{1,200}\Z")]
Repetitions: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Moment: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z\Z")
]
LabelText: TypeAlias = Annotated[str, msgspec.Meta(max_length=1000, pattern=NO_ZERO)]
LongText: TypeAlias = Annotated[str, msgspec.Meta(max_length=10_000)]
RunStatus: TypeAlias = Literal["running", "complete", "incomplete", "mixed"]


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A run. Its fields, in this order, are the columns of the table `runs` and the keys of a run file.

    Attributes:
        id: Its name, unique within the store.
        kind: A run of a suite, a grading by rubric, or a recording of live traffic.
        suite: The suite's name.
        dataset: The dataset's name.
        fingerprint: The dataset's fingerprint.
        seed: The seed.
        repetitions: How often each sample is run.
        samples: How many samples there are; 0 for a recording, whose samples come as it goes on.
        status: How it stands.
        reason: Why it is not complete.
        started_at: When it began, in RFC 3339 with milliseconds.
        finished_at: When it ended.
        duration_s: How long it took.
        tool_version: The version of this package.
        identity: Plain JSON that must be the same for a run to be resumed.
        facts: Plain JSON from which, with the outputs and marks, its report is derived again.
        experiment: The experiment that it belongs to; None for a run of its own.
    """

    id: Id
    kind: RunKind = "run"
    suite: Plain | None = None
    dataset: Plain
    fingerprint: Plain
    seed: int = 0
    repetitions: Repetitions = 1
    samples: Count
    status: RunStatus = "running"
    reason: Plain | None = None
    started_at: Moment
    finished_at: Moment | None = None
    duration_s: Seconds | None = None
    tool_version: Plain
    identity: Mapping[str, Any] = FrozenDict()
    facts: Mapping[str, Any] = FrozenDict()
    experiment: Id | None = None

    @property
    def traits(self) -> RunTraits:
        """What follows from its kind."""
        return TRAITS[self.kind]

    @property
    def series(self) -> str | None:
        """Its name in its experiment, under which later ones have its like; None for a run of its own."""
        return None if self.experiment is None else str(self.facts.get("label"))


class RunEnd(NamedTuple):
    """How a run, or a further scoring of it, ended.

    Attributes:
        status: How it stands.
        reason: Why it is not complete.
        finished_at: When it ended.
        duration_s: How long it took.
    """

    status: RunStatus
    reason: str | None = None
    finished_at: str | None = None
    duration_s: float | None = None


class ScoringFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One marking of a run's outputs: number 0 is the run's own, later ones were added by rescoring.

    Attributes:
        number: From 0.
        cards: The metrics, in the order of the marks.
        identity: Plain JSON that must be the same for the scoring to be continued.
        status: How it stands.
        started_at: When it began.
        finished_at: When it ended.
    """

    number: Count
    cards: tuple[MetricCard, ...]
    identity: Mapping[str, Any] = FrozenDict()
    status: RunStatus = "running"
    started_at: Moment | None = None
    finished_at: Moment | None = None


class ScoringRow(ScoringFacts, frozen=True, kw_only=True):
    """A marking of a run's outputs as the store has it.

    Attributes:
        done: How many executions it has marked.
    """

    done: int = 0


class RunRow(RunFacts, frozen=True, kw_only=True):
    """A run as the store has it.

    Attributes:
        number: Its number, by which other rows name it.
        done: How many executions, or graded items, are kept.
        scorings: Its scorings, the run's own first.
    """

    number: int
    done: int
    scorings: tuple[ScoringRow, ...]


class BaselineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a baseline remembers of its run.

    Attributes:
        promoted_at: When it became the baseline, in RFC 3339.
        fingerprint: The fingerprint of its dataset.
        metrics: By a metric's name, everything that must be equal for its marks to be compared, as plain JSON.
        summary: What the run came to: its macro-F1, its pass-rate, the pass-rate of each metric.
    """

    promoted_at: str
    fingerprint: str
    metrics: Mapping[str, Any]
    summary: Mapping[str, Any]


class BaselineRow(msgspec.Struct, frozen=True, kw_only=True):
    """The run that the others of its suite are compared with.

    Attributes:
        run: Its id.
        suite: The suite; None for runs without one, which have a baseline for each dataset.
        dataset: The dataset's name.
        facts: What it remembers.
    """

    run: str
    suite: str | None
    dataset: str
    facts: BaselineFacts


LabelOrder: TypeAlias = Literal["random", "efficient", "disputed", "uncertain", "chosen"]


class LabelFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one person said of one output, by one metric or one criterion of a rubric.

    Attributes:
        position: The sample's place in the run, from 0.
        repetition: The repetition that the person saw, from 0.
        metric: The metric; empty for a criterion of a grading.
        criterion: The criterion of a rubric; empty for the metric as a whole.
        author: Who said it.
        at: When, in RFC 3339 with microseconds.
        verdict: `pass` or `fail`, or the label of an option of the criterion; None for a skipped one.
        skip_reason: Why it was skipped; None for a verdict.
        note: What else the person wrote.
        order: How the sample came to the person: drawn at random, evenly or more where the judge is unsure
            (`efficient`); the disputed or the uncertain first; or the person chose it.
        probability: How probable it was that this sample is drawn; None where samples were not drawn at random.
        seed: The seed of the draw.
    """

    position: Annotated[int, msgspec.Meta(ge=0)]
    repetition: Annotated[int, msgspec.Meta(ge=0)] = 0
    metric: LabelText = ""
    criterion: LabelText = ""
    author: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_ZERO)]
    at: LabelText
    verdict: LabelText | None = None
    skip_reason: LongText | None = None
    note: LongText | None = None
    order: LabelOrder = "random"
    probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    seed: int = 0

    @property
    def is_drawn(self) -> bool:
        """Whether the sample was drawn at random, so that the label speaks for the run."""
        return self.order in ("random", "efficient")


class LeaseOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a run.

    Attributes:
        host: The name of its machine.
        pid: Its process id.
        start: When it started, as `process_start` writes it; None where the system does not say.
        heartbeat_age_s: Seconds since its last heartbeat.
        alive: Whether the process lives, or runs on another machine and its heartbeat is recent.
    """

    host: str
    pid: int
    start: str | None
    heartbeat_age_s: float
    alive: bool
