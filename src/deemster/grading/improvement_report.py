"""The report of a rubric improvement: the accepted wordings and every trial."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec

from deemster.agreement.agreement_gain import AgreementGain
from deemster.errors import plural
from deemster.formats.canonical_json import canonical
from deemster.records import Usage
from deemster.rubrics.rubric_definition import Rubric
from deemster.text.number_format import format_number
from deemster.text.rendered import Rendered
from deemster.text.text_sections import DataText, DiffText, TextLine, TextSection, TextTable

_PIECE = 180
TrialDecision: TypeAlias = Literal["accepted", "rejected", "no better", "refused", "out of reach"]


class TargetCriterion(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion that other words were looked for.

    Attributes:
        criterion: Its name.
        requirement: Its wording at the beginning.
        train_n: Labelled items of the training part.
        train_agreement: How well judges and people agree there.
        train_disagreements: On how many of them they do not.
        held_out_n: Labelled items of the held-out part.
        held_out_agreement: How well judges and people agree there.
        least_p: The p-value that a perfect wording would reach on the held-out part.
    """

    criterion: str
    requirement: str
    train_n: int
    train_agreement: float | None
    train_disagreements: int
    held_out_n: int
    held_out_agreement: float | None
    least_p: float


class WordingTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One wording that was tried.

    Attributes:
        round: The round, from 1.
        criterion: The criterion's name.
        decision: `accepted`; `rejected` by the test; `no better` on the training part, so not tested; `refused`, since
            the proposal cannot be used; `out of reach`, since no wording could pass the test.
        level: What p is held against.
        requirement: The proposed wording; None where there is none.
        diagnosis: What misleads in the present one, in the writer's words.
        train: The gain on the training part, of which examples were shown: it is no evidence.
        held_out: The gain on the held-out part.
        message: What else there is to say.
    """

    round: int
    criterion: str
    decision: TrialDecision
    level: float
    requirement: str | None = None
    diagnosis: str | None = None
    train: AgreementGain | None = None
    held_out: AgreementGain | None = None
    message: str | None = None


class Improvement(Rendered, msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A rubric with the wordings that held-out agreement speaks for.

    Attributes:
        before: The rubric as it was.
        after: The rubric as it is; the same where nothing was accepted.
        targets: The criteria that other words were looked for, worst first.
        tries: Every wording that was tried, in order.
        alpha: The chance that any wording is accepted though it is no better.
        family: How many tests that chance is divided among.
        train_items: Items that examples come from.
        held_out_items: Items that decide.
        stopped: Why it ended.
        complete: Whether it ended by itself; otherwise it can go on from where it stopped.
        usage: What all models used, earlier parts of the work included.
    """

    before: Rubric
    after: Rubric
    targets: tuple[TargetCriterion, ...]
    tries: tuple[WordingTrial, ...]
    alpha: float
    family: int
    train_items: int
    held_out_items: int
    stopped: str
    complete: bool = True
    usage: Usage | None = None

    @property
    def accepted(self) -> tuple[str, ...]:
        """The criteria that have another wording now."""
        return tuple(each.criterion for each in self.tries if each.decision == "accepted")

    @property
    def cost_usd(self) -> Decimal | None:
        """What the models cost; None where that is unknown."""
        return Decimal(0) if self.usage is None or not self.usage.calls else self.usage.cost_usd

    @property
    def diff(self) -> str:
        """What changed, as a unified diff of the two rubrics in YAML; empty where nothing did."""
        old, new = (rubric.to_text("yaml").splitlines() for rubric in (self.before, self.after))
        lines = list(difflib.unified_diff(old, new, "before.yaml", "after.yaml", lineterm=""))
        return "".join(f"{line}\n" for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        fields: dict[str, Any] = {
            "accepted": list(self.accepted),
            "alpha": self.alpha,
            "family": self.family,
            "train_items": self.train_items,
            "held_out_items": self.held_out_items,
            "stopped": self.stopped,
            "complete": self.complete,
            "cost_usd": None if self.cost_usd is None else str(self.cost_usd),
            "targets": msgspec.to_builtins(self.targets),
            "tries": msgspec.to_builtins(self.tries),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "diff": self.diff,
        }
        return fields

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return improvement_sections(self)

    def pieces(self) -> Iterable[bytes]:
        """Everything as canonical JSON, with a line end."""
        return (canonical(self.to_dict()), b"\n")


def improvement_sections(result: Improvement) -> list[TextSection]:
    """What an improvement says to people, in order."""
    diff = [TextSection(("Diff",), [(DiffText(result.diff.rstrip("\n")),)], key="diff")] if result.diff else []
    return [TextSection(("Rubric improvement",), _lines(result)), _targets(result), *_tries(result), *diff]


def _lines(result: Improvement) -> list[TextLine]:
    accepted: list[str] = []
    for name in result.accepted:
        accepted += [", " if accepted else "", DataText(name)]
    said: TextLine = (
        ("Accepted: ", *accepted, ".") if accepted else ("No wording was accepted; the rubric stays as it was.",)
    )
    cost = "" if result.cost_usd is None else f" The models cost ${result.cost_usd:.4f}."
    parts = f"{plural(result.train_items, 'item')} to learn from, {result.held_out_items:,} held out to decide."
    rule = (
        "A wording is accepted where agreement on the held-out items rises by more than noise: one-sided sign-flip "
        "test of the paired differences (McNemar's exact test for yes and no), with Holm's correction for "
        f"{plural(result.family, 'possible test')}. The chance of accepting any wording that is no better is at most "
        f"{result.alpha:g}, over all rounds."
    )
    lines: list[TextLine] = [said, (f"{parts}{cost}",), (rule,), ("It ended since ", DataText(result.stopped), ".")]
    if not result.complete:
        lines.insert(0, ("Warning: this is incomplete; it can go on from where it stopped.",))
    return lines


def _targets(result: Improvement) -> TextSection:
    head = ("criterion", "agreement, train", "items", "agreement, held out", "items", "p of a perfect wording")
    rows = [
        (
            DataText(target.criterion),
            format_number(target.train_agreement),
            f"{target.train_n:,}",
            format_number(target.held_out_agreement),
            f"{target.held_out_n:,}",
            f"{target.least_p:.4g}",
        )
        for target in result.targets
    ]
    if not rows:
        return TextSection(("Criteria",), [("Judges and people agree on every item of the training part.",)])
    return TextSection(("Criteria",), [("Those with the worst agreement, worst first.",)], TextTable(head, rows))


def _tries(result: Improvement) -> list[TextSection]:
    head = ("round", "criterion", "train", "held out", "better", "worse", "p", "level", "decision")
    rows = [
        (
            str(each.round),
            DataText(each.criterion),
            _change(each.train),
            _change(each.held_out),
            "" if each.held_out is None else f"{each.held_out.better:,}",
            "" if each.held_out is None else f"{each.held_out.worse:,}",
            "" if each.held_out is None or each.held_out.p_value is None else f"{each.held_out.p_value:.4g}",
            f"{each.level:.4g}",
            each.decision,
        )
        for each in result.tries
    ]
    if not rows:
        return []
    sections = [TextSection(("Tries",), [], TextTable(head, rows, ("worse", "better")))]
    for number, each in enumerate(result.tries, 1):
        lines: list[TextLine] = []
        if each.diagnosis is not None:
            lines.append(("Diagnosis: ", *_pieces(each.diagnosis)))
        if each.requirement is not None:
            lines.append(("Wording: ", *_pieces(each.requirement)))
        if each.message is not None:
            lines.append(("Note: ", *_pieces(each.message)))
        sections.append(TextSection((f"Try {number}: ", DataText(each.criterion), f", {each.decision}"), lines))
    return sections


def _change(gain: AgreementGain | None) -> str:
    return "" if gain is None else f"{format_number(gain.before)} to {format_number(gain.after)}"


def _pieces(text: str) -> list[str]:
    """A text from data in pieces that no renderer cuts."""
    pieces: list[str] = []
    for line in textwrap.wrap(text, _PIECE) or [""]:
        pieces += [" ", DataText(line)] if pieces else [DataText(line)]
    return pieces
