"""The claim-faithfulness metric: the share of the answer's claims that the context supports."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import Meta

from deemster.errors import ConfigurationError, show_value
from deemster.judges._geval_prompt import NOTHING
from deemster.judges._untrusted_text import wrap_texts
from deemster.judges.judge_panel import SEED
from deemster.judges.judge_script import JudgeMetric, NoAnswerError, ask_all, ask_model
from deemster.judges.prompt_templates import Prompt, load_prompt
from deemster.judges.reply_parser import (
    TEXT,
    UnreadableReplyError,
    choice_entry,
    reply_entries,
    reply_schema,
    text_entry,
    truncate_text,
)
from deemster.judges.sample_context import context_passages, question_text, sample_passages
from deemster.metrics.builtin_metric import UnscoredError, output_text
from deemster.metrics.option_checks import PositiveInteger
from deemster.records import Answer, Ask, Message, NoAnswer, Output, Sample, Script
from deemster.records.model_requests import JUDGE

VERDICTS = ("supported", "contradicted", "open")
LISTED = 20
CLAIMS_SCHEMA = reply_schema({"claims": {"type": "array", "items": TEXT}})
SUPPORT_SCHEMA = reply_schema({"reason": TEXT, "verdict": {"type": "string", "enum": list(VERDICTS)}})


class ClaimVerdict(NamedTuple):
    """Whether the context supports a claim, and why."""

    verdict: str
    reason: str


class ClaimFaithfulness(JudgeMetric, frozen=True, kw_only=True):
    """The share of the answer's claims that the context supports.

    Reads the output's text; `input.question`, else the whole input as JSON; and the context: the texts in
    `output.retrieved`, else `input.context`, else `metadata.context`, a text or a list of texts or of maps with a
    `text`. A first request takes the answer apart into claims, then one request for each claim asks whether the context
    supports it, contradicts it or leaves it open. The score is supported / claims. A claim on which no usable verdict
    comes leaves the whole unscored, as a share of the others would be another number.
    An answer without claims, such as "I do not know", has no share: it is unscored, for 0 of 0 is undefined.
    `without_claims: best` gives it 1. `model` is the role that is asked.
    More than `max_claims` claims are `too_large`.
    Details: claims, supported, contradicted, open, model, prompt_hash; findings, each claim with its verdict and
    reason, the unsupported ones first, at most 20 of them.
    Example: two of three claims stand in the context: 0.6667.

    Worked examples:
        - question: How long is parental leave?
          metadata:
            context: Each parent has 16 weeks of paid parental leave.
          output: Each parent has 16 weeks. It is paid. Tell HR a year ahead.
          replies:
          - '{"claims": ["Each parent has 16 weeks.", "The leave is paid.", "Tell HR a year ahead."]}'
          - '{"reason": "The context says so.", "verdict": "supported"}'
          - '{"reason": "The context says so.", "verdict": "supported"}'
          - '{"reason": "The context does not say.", "verdict": "open"}'
    """

    alias: ClassVar[str] = "claim-faithfulness"
    quotes: ClassVar[frozenset[str]] = frozenset({"findings"})
    reads: ClassVar[frozenset[str]] = frozenset({"context"})
    reads_expected: ClassVar[bool] = False
    pass_mark: ClassVar[float] = 0.8

    model: str = JUDGE
    max_claims: Annotated[int, Meta(ge=1, le=1000)] = 50
    without_claims: Literal["unscored", "best"] = "unscored"
    max_tokens: PositiveInteger = 2048

    def validate(self) -> None:
        """Refuse options that are out of range.

        Raises:
            ConfigurationError: An option is out of range.
        """
        if not isinstance(self.model, str) or not self.model.strip():
            raise ConfigurationError(
                f"`model` of {self.alias} is a name of the suite's models, not {show_value(self.model)}."
            )

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return (self.model,)

    @property
    def most_listed(self) -> int:
        """How many entries a list of a reply has, at most, so that a dry run can count the requests."""
        return self.max_claims

    def prompt_text(self) -> str:
        """Both prompts, as a person reads them."""
        return f"{load_prompt('claims').text}\n\n{load_prompt('claim-support').text}"

    def expect(self, sample: Sample) -> str:
        """The question.

        Raises:
            UnscoredError: It is not valid Unicode, or the sample's context cannot be read.
        """
        sample_passages(sample)
        return question_text(sample)

    def judge_output(self, sample: Sample, output: Output) -> Script:
        """Ask for the claims, then for each whether it is supported, and mark.

        Raises:
            UnscoredError: The sample or output cannot be read, or makes no claim, or too many.
            NoAnswerError: A request had no usable answer.
        """
        texts = {"question": question_text(sample), "actual_output": output_text(output)}
        passages = context_passages(sample, output)
        values, nonce = wrap_texts(texts)
        reply = yield from ask_model(
            self._ask(load_prompt("claims").messages(values, nonce=nonce), CLAIMS_SCHEMA), parse_claims
        )
        claims = reply.value
        if len(claims) > self.max_claims:
            raise UnscoredError(
                "too_large",
                f"The answer makes {len(claims)} claims; at most {self.max_claims} are checked. Raise `max_claims`.",
            )
        beside = {"model": reply.answer.model, "prompt_hash": self.prompt_hash}
        if not claims:
            if self.without_claims == "unscored":
                raise UnscoredError(
                    "bad_output", "The answer makes no claim, so that there is no share of supported ones."
                )
            return self.mark(1.0, {**dict.fromkeys(("claims", *VERDICTS), 0), **beside, "findings": []})
        ask, layout = self._ask, load_prompt("claim-support")
        replies = yield from ask_all(
            [ask(support_messages(layout, passages, claim), SUPPORT_SCHEMA) for claim in claims], parse_claim_verdict
        )
        findings = []
        for claim, found in zip(claims, replies, strict=True):
            if isinstance(found, NoAnswer):
                raise NoAnswerError(found)
            findings.append(
                {"claim": truncate_text(claim), "verdict": found.value.verdict, "reason": found.value.reason}
            )
        counts = {verdict: sum(entry["verdict"] == verdict for entry in findings) for verdict in VERDICTS}
        findings.sort(key=lambda entry: entry["verdict"] == "supported")
        listed: dict[str, Any] = {"findings": findings[:LISTED]}
        if len(findings) > LISTED:
            listed["truncated"] = True
        return self.mark(counts["supported"] / len(claims), {"claims": len(claims), **counts, **beside, **listed})

    def _ask(self, messages: tuple[Message, ...], schema: Any) -> Ask:
        return Ask(messages=messages, schema=schema, role=self.model, seed=SEED, max_tokens=self.max_tokens)


def support_messages(layout: Prompt, passages: tuple[str, ...], claim: str) -> tuple[Message, Message]:
    """The two messages that ask whether passages support a claim.

    Args:
        layout: The prompt.
        passages: The context.
        claim: The claim, which is as little to be trusted as the answer it comes from.
    """
    labels = [f"passage_{place}" for place in range(1, len(passages) + 1)]
    found, nonce = wrap_texts({**dict(zip(labels, passages, strict=True)), "claim": claim})
    context = "\n\n".join(found[label] for label in labels) or NOTHING
    return layout.messages({"context": context, "claim": found["claim"]}, nonce=nonce)


def parse_claims(answer: Answer) -> list[str]:
    """The distinct claims that a reply lists, in its order.

    Raises:
        UnreadableReplyError: It is no list of texts.
    """
    claims = reply_entries(answer, ("claims",))["claims"]
    if type(claims) is not list or not all(type(claim) is str and claim.strip() for claim in claims):
        raise UnreadableReplyError("`claims` is a list of texts that are not blank.")
    distinct = list(dict.fromkeys(claim.strip() for claim in claims))
    try:
        "".join(distinct).encode()
    except UnicodeEncodeError:
        raise UnreadableReplyError("`claims` are not valid Unicode.") from None
    return distinct


def parse_claim_verdict(answer: Answer) -> ClaimVerdict:
    """What a reply says of one claim.

    Raises:
        UnreadableReplyError: It is not a reason and a known verdict.
    """
    entries = reply_entries(answer, ("reason", "verdict"))
    return ClaimVerdict(choice_entry(entries, "verdict", VERDICTS), text_entry(entries, "reason"))
