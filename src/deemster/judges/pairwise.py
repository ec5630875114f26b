"""The pairwise metric: a model compares the output with another one, in both orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from deemster.formats.json_values import name_kind
from deemster.judges._untrusted_text import wrap_texts
from deemster.judges.judge_panel import PanelMetric, Seat, reweigh_marks
from deemster.judges.judge_script import Asking, ParsedReply, ask_all
from deemster.judges.prompt_templates import Prompt, check_template, check_text, fill_template, load_prompt
from deemster.judges.reply_parser import TEXT, choice_entry, reply_entries, reply_schema, text_entry
from deemster.judges.sample_context import check_characters, question_text, reference_text
from deemster.judges.vote import Vote
from deemster.metrics.builtin_metric import output_text, unscorable_sample
from deemster.records import Answer, Mark, Message, MetricScore, NoAnswer, Output, Sample, Script

KEYS = ("reason", "winner")
WINNERS = ("A", "B", "tie")
PLACES = ("question", "answer_a", "answer_b", "criteria")
CRITERIA = (
    "it answers the question more correctly and completely. Between answers that are equally right and complete, "
    "the clearer one is better."
)
WIN, TIE, LOSS = 1.0, 0.5, 0.0
SCHEMA = reply_schema({"reason": TEXT, "winner": {"type": "string", "enum": list(WINNERS)}})


class Preference(NamedTuple):
    """What one reply says: the better of the two texts it was shown, and why."""

    winner: str
    reason: str


class ComparedText(NamedTuple):
    """What an output is compared with."""

    question: str
    text: str
    side: str


class Pairwise(PanelMetric, frozen=True, kw_only=True):
    """Whether the output is better than another one, asked in both orders.

    Compares the output's text with `metadata.baseline_output`, a text, else with `expected_output`; `against` says
    which of the two it must be (`baseline`, `expected`; `auto` takes the first that is there). Reads also
    `input.question`, else the whole input as JSON. The judge sees the pair twice, each of the two first once, and names
    a winner or a tie. A preference held in both orders scores 1 for the output and 0 against it; everything else is a
    tie and scores 0.5: a preference that flips with the order is one for a place, not for an answer. Two equal texts
    tie without a question. The threshold of 0.5 passes what is not worse; 1.0 passes only what is better. Half a
    comparison says nothing: a member that is silent in one order is silent.
    `criteria` says what better means. `samples`, `models`, `combine`, `weights`, `quorum`, `temperature`: as of
    llm-as-judge. `template` takes the place of the case's text, with places for {{question}}, {{answer_a}},
    {{answer_b}} and {{criteria}}.
    Details: against, preference, consistent (whether the two orders agree), favoured (the place that won both times),
    judge_reason, model, prompt_hash; of a panel also votes, spread, agreement.
    Example: the output wins when shown first and loses when shown second: 0.5, favoured `first`.

    Worked examples:
        - question: When are you open?
          expected: From 9 to 17.
          output: From 9 to 17, Monday to Friday.
          replies: ['{"reason": "More complete.", "winner": "A"}', '{"reason": "More complete.", "winner": "B"}']
        - question: When are you open?
          expected: From 9 to 17.
          output: From 9 to 17, Monday to Friday.
          replies: ['{"reason": "The first.", "winner": "A"}', '{"reason": "The first.", "winner": "A"}']
    """

    alias: ClassVar[str] = "pairwise"
    quotes: ClassVar[frozenset[str]] = frozenset({"judge_reason", "votes"})
    reads: ClassVar[frozenset[str]] = frozenset({"baseline_output"})

    against: Literal["auto", "expected", "baseline"] = "auto"
    criteria: str = CRITERIA
    template: str | None = None

    def validate(self) -> None:
        """Refuse options that are out of range.

        Raises:
            ConfigurationError: An option is out of range.
        """
        super().validate()
        check_text(self.criteria, option="criteria", metric=self.alias)
        check_template(self.template, known=PLACES, needed=("answer_a", "answer_b"), metric=self.alias)

    @property
    def prompt(self) -> Prompt:
        """The prompt of the judge."""
        return load_prompt("pairwise", template=self.template)

    def prompt_text(self) -> str:
        """The whole prompt, as a person reads it."""
        return fill_template(self.prompt.text, {"criteria": self.criteria})

    @property
    def needs(self) -> tuple[str, ...]:
        """The text that the output is compared with."""
        sides = {"expected": "expected_output", "baseline": "baseline_output"}
        return (sides.get(self.against, "baseline_output|expected_output"),)

    def expect(self, sample: Sample) -> ComparedText:
        """The question and the text that the output is compared with.

        Raises:
            UnscoredError: There is none, or it is no text.
        """
        question = question_text(sample)
        baseline = sample.metadata.get("baseline_output")
        if self.against == "expected" or (self.against == "auto" and baseline is None):
            return ComparedText(question, reference_text(sample), "expected")
        if not isinstance(baseline, str):
            found = name_kind(baseline) if "baseline_output" in sample.metadata else "absent"
            raise unscorable_sample(f"`metadata.baseline_output` is text; here it is {found}.")
        return ComparedText(question, check_characters(baseline, called="`metadata.baseline_output`"), "baseline")

    def judge_output(self, sample: Sample, output: Output) -> Script:
        """Ask every member in both orders, and mark.

        Raises:
            UnscoredError: The sample or output cannot be read.
            NoAnswerError: Too few judges gave a usable answer.
        """
        other = self.expect(sample)
        text = output_text(output)
        fixed = {"against": other.side, "prompt_hash": self.prompt_hash}
        if text == other.text:
            return self.mark(TIE, {**fixed, "preference": "tie", "consistent": True, "identical": True})
        votes = yield from self.compare(other.question, text, other.text)
        score, details = self.combine_votes(votes)
        first = next(vote for vote in votes if vote.failure is None)
        found = {"preference": preference(score), "judge_reason": first.reason, "model": first.model, **details}
        return self.mark(score, {**fixed, **_orders(votes), **found})

    def compare(self, question: str, first: str, second: str) -> Asking[list[Vote]]:
        """The votes on two texts: 1 if the first is better in both orders, 0 if the second is, else 0.5.

        Args:
            question: What both answer.
            first: A text.
            second: Another.

        Returns:
            One vote for each seat; its verdict is what the judge said of the first text in each order, as `win/loss`.
        """
        asks = [
            *self.asks(self._messages(question, first, second), schema=SCHEMA),
            *self.asks(self._messages(question, second, first), schema=SCHEMA),
        ]
        found = yield from ask_all(asks, read_preference)
        count = len(self.seats)
        return [_vote(*each) for each in zip(self.seats, found[:count], found[count:], strict=True)]

    def settle(self, marks: Sequence[Mark]) -> list[Mark]:
        """The marks of a whole run, once all of them are there; only `combine: dawid-skene` changes any.

        Args:
            marks: The marks of this metric over a run.
        """
        if self.combine != "dawid-skene":
            return list(marks)
        return [
            msgspec.structs.replace(mark, details={**mark.details, "preference": preference(mark.score)})
            if isinstance(mark, MetricScore)
            else mark
            for mark in reweigh_marks(marks, label=lambda score: score)
        ]

    def _messages(self, question: str, a: str, b: str) -> tuple[Message, ...]:
        values, nonce = wrap_texts({"question": question, "answer_a": a, "answer_b": b})
        return self.prompt.messages({**values, "criteria": self.criteria}, nonce=nonce)


def preference(score: float) -> str:
    """Which of the two a score prefers.

    >>> preference(1.0), preference(0.5), preference(0.25)
    ('output', 'tie', 'other')
    """
    return "output" if score > TIE else "other" if score < TIE else "tie"


def read_preference(answer: Answer) -> Preference:
    """What one answer says.

    Raises:
        UnreadableReplyError: It is not exactly a reason and a winner.
    """
    entries = reply_entries(answer, KEYS)
    return Preference(choice_entry(entries, "winner", WINNERS), text_entry(entries, "reason"))


def _vote(seat: Seat, ahead: ParsedReply[Preference] | NoAnswer, behind: ParsedReply[Preference] | NoAnswer) -> Vote:
    """One seat's two replies as its vote.

    Args:
        seat: The seat.
        ahead: Its reply with the first text shown first.
        behind: Its reply with the first text shown second.
    """
    if isinstance(ahead, NoAnswer):
        return seat.failed_vote(ahead)
    if isinstance(behind, NoAnswer):
        return seat.failed_vote(behind)
    words_of = {"A": ("win", "loss"), "B": ("loss", "win"), "tie": ("tie", "tie")}
    one, other = words_of[ahead.value.winner][0], words_of[behind.value.winner][1]
    value = {("win", "win"): WIN, ("loss", "loss"): LOSS}.get((one, other), TIE)
    reason = ahead.value.reason if one == other else f"{ahead.value.reason} / {behind.value.reason}"
    return msgspec.structs.replace(
        seat.silent_vote, value=value, reason=reason, verdict=f"{one}/{other}", model=ahead.answer.model
    )


def _orders(votes: list[Vote]) -> dict[str, Any]:
    """Whether all members held to their preference, and the place that those who did not favoured."""
    labels = [vote.verdict for vote in votes if vote.verdict is not None]
    places = {label: place for label, place in (("win/loss", "first"), ("loss/win", "second")) if label in labels}
    favoured = next(iter(places.values())) if len(places) == 1 else None
    return {"consistent": all(label in {"win/win", "loss/loss", "tie/tie"} for label in labels), "favoured": favoured}
