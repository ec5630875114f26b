"""Asks a model to reword a criterion, and checks its proposal: another wording and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from deemster.errors import visible
from deemster.formats.json_values import SURROGATE
from deemster.judges._untrusted_text import make_nonce, wrap_text
from deemster.judges.judge_script import Asking, ParsedReply, ask_model
from deemster.judges.prompt_templates import load_prompt
from deemster.judges.reply_parser import TEXT, UnreadableReplyError, reply_entries, reply_schema, text_entry
from deemster.records import Answer, Ask, Message
from deemster.rubrics.criterion import Criterion

KEYS: Final = ("diagnosis", "requirement")
LONGEST: Final = 120
# So many words in a row are taken as copied.
COPIED: Final = 10
SEED: Final = 42
_NONE: Final = "(none)"
_WORD: Final = re.compile(r"\w+")
_SCHEMA: Final = reply_schema(dict.fromkeys(KEYS, TEXT))


class Disagreement(NamedTuple):
    """A submission about which judge and people disagree.

    Attributes:
        output: What judges see of it.
        truth: The verdict of people.
        said: The verdict of the judge.
        reason: Why, in the judge's words.
        why: Why, in the people's words, where they say so.
    """

    output: str
    truth: str
    said: str
    reason: str | None = None
    why: str | None = None


class Proposal(NamedTuple):
    """Another wording of a criterion.

    Attributes:
        diagnosis: What in the present wording misleads, in the writer's words.
        requirement: The new wording.
    """

    diagnosis: str
    requirement: str


def ask_rewording(
    criterion: Criterion,
    exemplars: Sequence[Disagreement],
    *,
    role: str,
    guidelines: str | None = None,
    task: str | None = None,
    tried: Sequence[str] = (),
    seed: int = 0,
) -> Asking[ParsedReply[Proposal]]:
    """Ask a model for another wording of a criterion.

    Args:
        criterion: What is reworded.
        exemplars: Where judge and people disagree.
        role: The model role that is asked.
        guidelines: Those of the rubric.
        task: What the submissions' authors were asked to do.
        tried: Wordings that did not help.
        seed: The seed of the marker lines.

    Raises:
        NoAnswerError: No answer came, or none that can be used.
    """
    ask = Ask(
        messages=_messages(criterion, exemplars, guidelines=guidelines, task=task, tried=tried, seed=seed),
        schema=_SCHEMA,
        role=role,
        seed=SEED,
        max_tokens=2048,
    )
    outputs = [exemplar.output for exemplar in exemplars]
    return (yield from ask_model(ask, lambda answer: parse_proposal(answer, criterion, tried=tried, outputs=outputs)))


def parse_proposal(answer: Answer, criterion: Criterion, *, tried: Sequence[str], outputs: Sequence[str]) -> Proposal:
    """The proposal that a reply holds.

    Args:
        answer: The reply.
        criterion: What is reworded.
        tried: Wordings that did not help.
        outputs: The submissions that were shown.

    Raises:
        UnreadableReplyError: It is no wording, or one that was tried, is too long, or copies a submission.
    """
    entries = reply_entries(answer, KEYS)
    diagnosis, requirement = text_entry(entries, "diagnosis"), " ".join(text_entry(entries, "requirement").split())
    if visible(requirement) != requirement or SURROGATE.search(diagnosis):
        raise UnreadableReplyError("The reply holds characters that cannot be seen, such as control characters.")
    many = len(requirement.split())
    if many > LONGEST:
        raise UnreadableReplyError(f"`requirement` has {many} words; at most {LONGEST} are taken.")
    known = {_folded(text) for text in (criterion.requirement, *tried)}
    if _folded(requirement) in known:
        raise UnreadableReplyError("`requirement` is a wording that was there before.")
    if (copied := _copied(requirement, outputs)) is not None:
        raise UnreadableReplyError(f"`requirement` copies from a submission: `{visible(copied, limit=80)}`.")
    return Proposal(diagnosis, requirement)


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _copied(requirement: str, outputs: Sequence[str]) -> str | None:
    """Consecutive words that a requirement copies from a submission; None if there are none.

    >>> _copied("Says that a b c d e f g h i j is so.", ["x a b c d e f g h i j y"])
    'a b c d e f g h i j'
    """
    mine = _WORD.findall(requirement.casefold())
    rows = {" ".join(mine[at : at + COPIED]) for at in range(len(mine) - COPIED + 1)}
    for output in outputs:
        theirs = _WORD.findall(output.casefold())
        for at in range(len(theirs) - COPIED + 1):
            if (row := " ".join(theirs[at : at + COPIED])) in rows:
                return row
    return None


def _messages(
    criterion: Criterion,
    exemplars: Sequence[Disagreement],
    *,
    guidelines: str | None,
    task: str | None,
    tried: Sequence[str],
    seed: int,
) -> tuple[Message, ...]:
    texts = _untrusted(exemplars, task)
    # Wordings that were tried come from a model that has read submissions.
    texts |= {f"tried_{number}": text for number, text in enumerate(tried, 1)}
    nonce = make_nonce(texts.values(), about=(seed, criterion.name, criterion.requirement))
    blocks = {label: wrap_text(label, text, nonce=nonce) for label, text in texts.items()}
    options = [f"- {option.label}" for option in criterion.options]
    values = {
        "name": f'The criterion "{criterion.name}"',
        "kind": criterion.kind,
        "sign": "a fault: MET or more of it costs points" if criterion.weight < 0 else "a strength",
        "requirement": criterion.requirement,
        "options": "\n".join(options) or "MET, UNMET, CANNOT_ASSESS",
        "guidelines": guidelines or _NONE,
        "tried": "\n".join(blocks[f"tried_{number}"] for number in range(1, len(tried) + 1)) or _NONE,
        "prompt": blocks.get("prompt", _NONE),
        "exemplars": "\n\n".join(_shown(number, each, blocks) for number, each in enumerate(exemplars, 1)),
        "longest": str(LONGEST),
    }
    return load_prompt("reword").messages(values, nonce=nonce)


def _untrusted(exemplars: Sequence[Disagreement], task: str | None) -> dict[str, str]:
    """Every text that the author of the rubric did not write, by label; a reason may quote a submission."""
    texts = {} if task is None else {"prompt": task}
    for number, exemplar in enumerate(exemplars, 1):
        texts[f"submission_{number}"] = exemplar.output
        if exemplar.reason is not None:
            texts[f"grader_{number}"] = exemplar.reason
        if exemplar.why is not None:
            texts[f"people_{number}"] = exemplar.why
    return texts


def _shown(number: int, exemplar: Disagreement, blocks: Mapping[str, str]) -> str:
    lines = [
        f"Submission {number}. The people say {exemplar.truth}; the grader said {exemplar.said}.",
        blocks[f"submission_{number}"],
    ]
    for label, title in (("grader", "The grader's reason:"), ("people", "The people's reason:")):
        if (said := blocks.get(f"{label}_{number}")) is not None:
            lines += [title, said]
    return "\n".join(lines)
