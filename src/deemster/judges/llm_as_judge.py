"""The llm-as-judge metric: a model scores whether the output says what was expected."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from deemster.judges._log_probabilities import read_integer_score
from deemster.judges._untrusted_text import wrap_texts
from deemster.judges.judge_panel import ALTERNATIVES, PanelMetric, ScoreReply
from deemster.judges.prompt_templates import Prompt, check_template, load_prompt
from deemster.judges.reply_parser import TEXT, number_entry, reply_entries, reply_schema, text_entry
from deemster.judges.sample_context import question_text, reference_text
from deemster.metrics.builtin_metric import output_text
from deemster.records import Answer, Output, Sample, Script

KEYS = ("reason", "score")
PLACES = ("question", "expected_output", "actual_output")
TENTHS = 10


class LlmAsJudge(PanelMetric, frozen=True, kw_only=True):
    """How well the output says what was expected, in the eyes of a model.

    Reads `input.question`, else the whole input as JSON; `expected_output`, any JSON value but null; and the output's
    text. The judge places the output in bands: 1 the same meaning, 0.7 to 0.9 a small omission, 0.3 to 0.6 partly
    right, 0 to 0.2 a contradiction or off topic. It replies with a reason and then a score; a reply that is not exactly
    that is asked for once more and then unscored.
    `samples` asks several times at a `temperature` above 0 (0.7 unless given), `models` asks several models; `combine`
    (`mean`, `median`, `majority`, `weighted` with `weights`, `dawid-skene`) makes one score of the votes where a
    `quorum` spoke, every member unless given. `logprobs` asks for a whole number from 0 to 10 and takes its
    expectation over what the judge might have written. `template` takes the place of the case's text, with places for
    {{question}}, {{expected_output}} and {{actual_output}}.
    Details: judge_score, judge_reason, model, prompt_hash; of a panel also votes, spread, agreement; with logprobs
    scoring, mass.
    Example: "Paris" against "It is Paris, in France." scores 1.0 with most judges.

    Worked examples:
        - question: What is the capital of France?
          expected: Paris
          output: It is Paris, in France.
          replies: ['{"reason": "It names Paris.", "score": 1.0}']
        - question: What is the capital of France?
          expected: Paris
          output: It is Lyon.
          replies: [I would give it a zero., '{"reason": "Another city.", "score": 0.0}']
        - question: What is the capital of France?
          expected: Paris
          output: It is Lyon.
          replies: [I would give it a zero., Zero!]
    """

    alias: ClassVar[str] = "llm-as-judge"
    core: ClassVar[bool] = True
    quotes: ClassVar[frozenset[str]] = frozenset({"judge_reason", "votes"})

    logprobs: bool = False
    template: str | None = None

    def validate(self) -> None:
        """Refuse options that are out of range.

        Raises:
            ConfigurationError: An option is out of range.
        """
        super().validate()
        check_template(self.template, known=PLACES, needed=("actual_output",), metric=self.alias)

    @property
    def prompt(self) -> Prompt:
        """The prompt of the judge."""
        return load_prompt("llm-as-judge-tenths" if self.logprobs else "llm-as-judge", template=self.template)

    def prompt_text(self) -> str:
        """The whole prompt, as a person reads it."""
        return self.prompt.text

    def expect(self, sample: Sample) -> dict[str, str]:
        """The question and the expected output, as text.

        Raises:
            UnscoredError: There is no expected output, or one of the two is not valid Unicode.
        """
        return {"question": question_text(sample), "expected_output": reference_text(sample)}

    def judge_output(self, sample: Sample, output: Output) -> Script:
        """Ask every member for a score and mark.

        Raises:
            UnscoredError: The sample or output cannot be read.
            NoAnswerError: Too few judges gave a usable answer.
        """
        prompt = self.prompt
        values, nonce = wrap_texts({**self.expect(sample), "actual_output": output_text(output)})
        panel = yield from self.ask_panel(
            prompt.messages(values, nonce=nonce),
            schema=SCHEMA_OF_TENTHS if self.logprobs else SCHEMA,
            read=self.read_reply,
            logprobs=ALTERNATIVES if self.logprobs else 0,
        )
        score, details = self.combine_votes(panel.votes)
        first = panel.answered[0]
        return self.mark(
            score,
            {
                "judge_score": score,
                "judge_reason": first.reason,
                "model": first.model,
                "prompt_hash": prompt.hash,
                **(panel.logprob_details() if self.logprobs else {}),
                **details,
            },
        )

    def read_reply(self, answer: Answer) -> ScoreReply:
        """What one answer says.

        Args:
            answer: The reply.

        Raises:
            UnreadableReplyError: It is not a reason and a score within range.
        """
        if self.logprobs:
            reply = read_integer_score(answer, low=0, high=TENTHS, logprobs=True)
            return msgspec.structs.replace(reply, value=reply.value / TENTHS)
        entries = reply_entries(answer, KEYS)
        reason = text_entry(entries, "reason")
        return ScoreReply(number_entry(entries, "score", low=0, high=1), reason)


SCHEMA = reply_schema({"reason": TEXT, "score": {"type": "number", "minimum": 0, "maximum": 1}})
SCHEMA_OF_TENTHS = reply_schema({"reason": TEXT, "score": {"type": "integer", "minimum": 0, "maximum": TENTHS}})
