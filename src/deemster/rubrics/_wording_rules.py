"""Rules about the wording of a requirement: joined, vague, negated, undecidable or too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from deemster.rubrics.criterion import Criterion

MOST_WORDS: Final = 60
# A longer requirement is refused as too long; no rule needs to read more of it.
_MOST_CHARACTERS: Final = 4000
# Labels of so many words say what the words of the requirement mean.
_DESCRIBING_WORDS: Final = 3

_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^“”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
_BRACKETED: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
# Two names, two numbers, or an expression that is one thing although it has `and` or a vague word in it.
_FIXED: Final = re.compile(
    r"(?<=[\w,;] )[A-Z]\w+ and [A-Z]\w+|\d+ and \d+|(?i:\b(?:terms and conditions|pros and cons|supply and demand"
    r"|advantages and disadvantages|strengths and weaknesses|date and time|questions? and answers?|salt and pepper"
    r"|cause and effect|one and the same"
    r"|(?:and|or) (?:more|fewer|less|later)|not only|(?:no|not) (?:more|less|fewer|later|longer) than"
    r"|proper (?:nouns?|names?)|natural (?:numbers?|languages?)|(?:healthcare|medical|legal) professionals?"
    r"|significant (?:figures?|digits?)|relevant to|clear (?:the|all)|of good faith)\b)"
)
_LEADING_CLAUSE: Final = re.compile(r"\A(?:if|when|where|whenever|unless)\b[^,]*,", re.IGNORECASE)
_SUBORDINATE: Final = re.compile(
    r"\b(?:that|what|if|when|where|who|whose|which|because|although|unless|until|while|whether|such as)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_RELATION: Final = re.compile(
    r"\b(?:between|compar\w+|contrasts?|differences?|distinguish\w*|distinction|among|versus|relat\w+)\b", re.IGNORECASE
)
_JOINT: Final = re.compile(r"(\w[\w'-]*)(,? (?:and/or|and|as well as|nor|plus)|, then|;) +(\w[\w'-]*)", re.IGNORECASE)
_DEFINITION: Final = re.compile(r":|\(|\bi\.e\.|\bmeaning\b")

_NUMBER: Final = "give a number: words, sentences, examples or places"
_LIST: Final = "list what must be there"
_REGISTER: Final = "name the fault that must be absent, or the register, for instance no slang, no blame"
_VISIBLE: Final = "say what a judge must see in the text for it to count"
_VAGUE: Final[dict[str, str]] = {
    word: advice
    for advice, words in (
        (_NUMBER, "short brief briefly concise concisely lengthy succinct detailed several few various enough ample"),
        (_NUMBER, "numerous plenty excessive overly unnecessarily"),
        (_LIST, "sufficient sufficiently adequate adequately thorough thoroughly comprehensive exhaustive extensive"),
        (_LIST, "in-depth deep deeply main-points key-points key-aspects"),
        (_REGISTER, "professional professionally friendly natural naturally fluent fluently elegant eloquent polished"),
        (_REGISTER, "pleasant smooth rich vivid vividly warmth nuanced"),
        (_VISIBLE, "good nice great excellent bad poor poorly strong weak high-quality well-written quality"),
        (_VISIBLE, "appropriate appropriately inappropriate suitable proper properly reasonable reasonably acceptable"),
        (_VISIBLE, "relevant useful helpful effective effectively efficient meaningful significant important sensible"),
        (_VISIBLE, "practical realistic plausible feasible believable constructive balanced safe fair right-thing"),
        (_VISIBLE, "clear clearly unclear readable understandable coherent logical well-structured easy easily simple"),
        (_VISIBLE, "interesting engaging compelling convincing persuasive insightful creative funny catchy memorable"),
    )
    for word in words.split()
}
_VAGUE_WORD: Final = re.compile(
    rf"(?<![\w-])(?:{'|'.join(word.replace('-', '[ -]') for word in _VAGUE)})(?![\w-])", re.IGNORECASE
)
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|cannot|\w+n't|without|lacks?|avoids?|omits?|excludes?|fails?|forgets?|ignores?|refrains?"
    r"|unclear|untrue|unreasonable|irrelevant|inappropriate|incorrect|inaccurate)\b",
    re.IGNORECASE,
)
# The negations that make a requirement ask for an absence when they stand alone.
_ABSENCE: Final = re.compile(r"\b(?:not|no|never|none|cannot|\w+n't|lacks?|avoids?)\b", re.IGNORECASE)
_OUTSIDE: Final = re.compile(
    r"\b(?:up[ -]to[ -]date|the latest|most recent|currently|best practices?|industry standards?|state of the art"
    r"|(?:company|our) policy|house style|style guide|as discussed|in class|the (?:lecture|textbook|attached|database)"
    r"|other (?:submissions|answers)|previous (?:version|answer)|common knowledge|in reality|user satisfaction)\b",
    re.IGNORECASE,
)


class WordingIssue(NamedTuple):
    """What a rule found in a requirement; without a suggestion that of the code holds."""

    code: str
    message: str
    suggestion: str | None = None


def wording_issues(criterion: Criterion) -> Iterator[WordingIssue]:
    """Find what is wrong with the wording of a requirement.

    Judges do not read a requirement that a metric answers, so only its length counts.
    """
    if criterion.check is None:
        text = _QUOTED.sub("Q", criterion.requirement[:_MOST_CHARACTERS])
        main = main_clause(text)
        yield from _joint_issues(main)
        yield from _negation_issues(criterion, main)
        if not _options_describe(criterion):
            yield from _vague_issues(main, text)
        for phrase in dict.fromkeys(found[0].lower() for found in _OUTSIDE.finditer(text)):
            yield WordingIssue("outside-knowledge", f"`{phrase}` cannot be judged from the submission alone.")
    words = len(criterion.requirement.split())
    if words > MOST_WORDS:
        message = f"The requirement has {words} words; judges lose the point of more than {MOST_WORDS}."
        yield WordingIssue("long-requirement", message)


def main_clause(text: str) -> str:
    """Cut a requirement to its main clause, without brackets and fixed expressions.

    A subordinate clause says when something counts or what is reported; it asks for nothing by itself.

    >>> main_clause("Says that the drug is safe and effective."), main_clause("If asked, links the pros and cons.")
    ('Says ', ' links the .')
    """
    text = _LEADING_CLAUSE.sub("", text)
    return _SUBORDINATE.sub("", _BRACKETED.sub("", _FIXED.sub("", text)))


def _options_describe(criterion: Criterion) -> bool:
    scored = [option for option in criterion.options if not option.na]
    return bool(scored) and all(len(option.label.split()) >= _DESCRIBING_WORDS for option in scored)


def _joint_issues(main: str) -> Iterator[WordingIssue]:
    joint = _JOINT.search(main)
    if joint and not _RELATION.search(main):
        message = (
            f"Two things are asked for at once (`{joint[0].lower()}`): a submission may meet one and not the other."
        )
        yield WordingIssue("double-barrelled", message)


def _vague_issues(main: str, text: str) -> Iterator[WordingIssue]:
    """Find words that every judge reads differently, unless the text goes on to define them."""
    for word in dict.fromkeys(found[0].lower() for found in _VAGUE_WORD.finditer(main)):
        if not _DEFINITION.search(text[text.lower().index(word) :]):
            advice = _VAGUE[word.replace(" ", "-")]
            yield WordingIssue("vague-word", f"`{word}` means something else to every judge.", f"Instead, {advice}.")


def _negation_issues(criterion: Criterion, main: str) -> Iterator[WordingIssue]:
    found = [word.lower() for word in _NEGATION.findall(main)]
    absence = _ABSENCE.search(main)
    if len(found) > 1:
        words = ", ".join(f"`{word}`" for word in found)
        yield WordingIssue("double-negative", f"The requirement denies twice ({words}); judges slip on it.")
    elif absence and criterion.weight < 0:
        message = f"`{absence[0]}` stands in a criterion of negative weight: meeting it means that something is absent."
        yield WordingIssue("negated-fault", message)
    elif absence and criterion.weight > 0 and not criterion.options:
        yield WordingIssue("negated", f"`{absence[0]}` asks for an absence: a submission that says nothing meets it.")
