"""Whether a requirement joins two things that can be met apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from deemster.rubrics._vague_words import (
    ADVERBS,
    ASPECTS,
    BEING,
    CONDITIONS,
    COPULAS,
    FINDING,
    MEASURES,
    OBJECT,
    OPENERS,
    PAIRS,
    PREPOSITIONS,
    QUALITIES,
    RELATIONS,
    REPORTS,
    SUBJECTS,
    TWOFOLD,
    VERBS,
)

_TOKEN: Final = re.compile(r"and/or|\w[\w'’-]*|[;,:.!?]")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^“”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)|\([^()]*\)|\[[^\[\]]*\]")
# As much of a requirement as is read; one that goes on is told to be too long.
READ: Final = 4000
_ENDS: Final = frozenset(";.!?")
_JOINTS: Final = frozenset({"and", "or", "and/or", "plus", "but", "nor"})
_ASKING: Final = frozenset({"how", "why", "what", "where", "when", "which", "whether"})
_NUMBERS: Final = frozenset({"at", "one", "two", "three"})
# Words of a form that any adverb has, too short to be one.
_SHORTEST: Final = 4


class Joint(NamedTuple):
    """Where two things are joined: the words on either side, for a message."""

    left: str
    word: str
    right: str


def unquoted(text: str) -> str:
    """A text without what stands in quotes or brackets, which is material and not wording.

    >>> unquoted('Says "good and proper" (or the like) twice.')
    'Says Q  twice.'
    """
    return _QUOTED.sub(lambda found: "Q" if found[0][0] not in "([" else "", text)


def tokens_of(text: str) -> list[str]:
    """Words in lower case, and marks, without what is quoted.

    >>> tokens_of("Cites a source, and/or says why.")
    ['cites', 'a', 'source', ',', 'and/or', 'says', 'why', '.']
    """
    return [token.replace("’", "'") for token in _TOKEN.findall(unquoted(text).lower())]


def joint_of(text: str) -> Joint | None:
    """The first place where a requirement joins two things that can be met apart; None where there is none.

    It looks at words alone: two verbs, two qualities or aspects, two things to be found, joined by `and`, `or`, `as
    well as` or a semicolon. Fixed pairs, comparisons, conditions and reported statements are one thing.

    >>> joint_of("Cites a source and explains the risk.")
    Joint(left='source', word='and', right='explains')
    >>> joint_of("Links to the terms and conditions.") is None
    True
    """
    words, names = tokens_of(text[:READ]), _names(text[:READ])
    for place, word in enumerate(words):
        step = _step(words, place)
        if not step or place == 0 or place + step >= len(words):
            continue
        left, right = words[:place], words[place + step :]
        if left[-1] == ",":
            left = left[:-1]
        if left and not (left[-1] in names and right[0] in names) and _joins(word, left, right):
            return Joint(left[-1], " ".join(words[place : place + step]), right[0])
    return None


def _names(text: str) -> frozenset[str]:
    """Words with a capital inside a sentence, which are names.

    >>> sorted(_names("Mentions Marie and Pierre Curie. Dates are given."))
    ['curie', 'marie', 'pierre']
    """
    return frozenset(word.lower() for word in re.findall(r"(?<=[\w,;] )[A-Z][\w'-]*", unquoted(text)))


def _step(words: Sequence[str], place: int) -> int:
    """How many tokens the joining word at a place takes; 0 where there is none."""
    if words[place] in _JOINTS or words[place] == ";":
        return 1
    if tuple(words[place : place + 2]) == (",", "then"):
        return 2
    return 3 if tuple(words[place : place + 3]) == ("as", "well", "as") else 0


def _joins(word: str, left: Sequence[str], right: Sequence[str]) -> bool:
    clause = _clause(left)
    if word == "and/or" or (word == "nor" and "neither" in clause):
        return True
    if not clause:
        return False
    if _is_one(clause, right) or _in_condition(clause):
        return False
    if _had_verb(clause) and (_has_verb(right) or _is_parallel(clause, right)):
        return True
    if word in {"or", "but", "nor", ";"} or reported(clause):
        return False
    return _qualities(clause, right) or _prepositions(clause, right) or _things(clause, right, exact=word != "as")


def _clause(left: Sequence[str]) -> Sequence[str]:
    """What stands before a joint, back to the end of the sentence before."""
    ends = [place for place, token in enumerate(left) if token in _ENDS]
    return left[ends[-1] + 1 :] if ends else left


def _is_one(clause: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the two sides are a fixed pair, or a relation that takes both."""
    if (clause[-1], right[0]) in PAIRS or right[0] in MEASURES:
        return True
    if tuple(right[:2]) in {("the", "like"), ("other", "similar"), ("or", "not")}:
        return True
    return any(token in RELATIONS for token in clause) and not _has_verb(right)


def _in_condition(clause: Sequence[str]) -> bool:
    """Whether the joint stands inside a clause that says when something counts."""
    places = [place for place, token in enumerate(clause) if token in CONDITIONS]
    if not places:
        # `requests that ask for names and addresses`: a clause about a noun.
        spots = [place for place, word in enumerate(clause[:-1]) if word == "that" and place]
        return any(clause[spot + 1] in VERBS and "," not in clause[spot:] for spot in spots)
    last = places[-1]
    if clause[last] in {"where", "which", "when"} and last and _asks(clause, last):
        return False
    return "," not in clause[last:]


def _asks(clause: Sequence[str], place: int) -> bool:
    """Whether a word such as `where` opens what is to be told, not a condition."""
    return _stem(clause[place - 1]) in FINDING or clause[place - 1] == "and"


def _stem(word: str) -> str:
    """The base form that a third person may come from.

    >>> _stem("identifies"), _stem("passes"), _stem("uses"), _stem("gives")
    ('identify', 'pass', 'use', 'give')
    """
    if word in VERBS:
        return word
    forms = [word[:-3] + "y" if word.endswith("ies") else "", word[:-1] if word.endswith("s") else ""]
    forms.append(word[:-2] if word.endswith("es") else "")
    if word.endswith("ing"):
        forms += [word[:-3], word[:-3] + "e", word[:-4]]
    return next((form for form in forms if form in VERBS), word)


def _is_verb(words: Sequence[str], place: int) -> bool:
    word = words[place]
    if word in BEING:
        return True
    stem = _stem(word)
    if stem not in VERBS:
        return False
    if stem not in TWOFOLD:
        return stem != word or place > 0 or (place + 1 < len(words) and words[place + 1] in OBJECT)
    return place + 1 < len(words) and words[place + 1] in OBJECT


def _is_adverb(word: str) -> bool:
    return word in ADVERBS or (word.endswith("ly") and len(word) > _SHORTEST)


def _has_verb(right: Sequence[str]) -> bool:
    """Whether what follows a joint says something by itself: a verb first, or a subject and a verb of its own."""
    place = next((at for at, word in enumerate(right) if not _is_adverb(word)), len(right))
    if place >= len(right):
        return False
    if right[place] in SUBJECTS or _is_verb(right, place):
        return True
    # `and the conclusion follows`: a noun phrase of up to three words, then a verb.
    if right[place] in OPENERS - _ASKING:
        for at in range(place + 2, min(place + 5, len(right))):
            if right[at] in _ENDS or right[at] in {",", "of", "that", "to"}:
                return False
            stem = _stem(right[at])
            if right[at] in BEING - {"never"} or (stem in VERBS - TWOFOLD and stem != right[at]):
                return True
    return False


def _had_verb(clause: Sequence[str]) -> bool:
    """Whether something was said before the joint: a verb that is known, or a third person at the beginning."""
    return _is_third(clause[0]) or any(token in BEING or _stem(token) in VERBS for token in clause)


def _is_third(word: str) -> bool:
    return word.endswith("s") and not word.endswith("ss") and len(word) > _SHORTEST


def _is_parallel(clause: Sequence[str], right: Sequence[str]) -> bool:
    """Whether both sides begin alike with a third person: `Rounds the result and tags the unit`, `never raises`."""
    place = next((at for at, word in enumerate(right) if not _is_adverb(word)), len(right))
    if place >= len(right) or not _is_third(right[place]):
        return False
    if place > 0:
        return True
    return _is_third(clause[0]) and place + 1 < len(right) and right[place + 1] in OBJECT


def reported(clause: Sequence[str]) -> bool:
    """Whether what follows is part of a statement that the submission is to make, which is one thing.

    >>> reported(["says", "that", "it", "is"])
    True
    """
    return any(word in REPORTS and after == "that" for word, after in pairwise(clause))


def _qualities(clause: Sequence[str], right: Sequence[str]) -> bool:
    """Whether two qualities or two aspects are joined."""
    before, after = clause[-1], right[0]
    if _is_adverb(after) and _is_adverb(before):
        return after not in ADVERBS
    if len(clause) > 1 and _is_predicate(clause) and after not in OPENERS:
        return True
    if after in {"in", "free"} or (_is_adverb(after) and len(right) > 1 and right[1] in QUALITIES):
        return before in QUALITIES
    if after.endswith("ing") and any(word.endswith("ing") for word in clause[1:]):
        return True
    return (before in QUALITIES and after in QUALITIES) or (before in ASPECTS and after in ASPECTS)


def _is_predicate(clause: Sequence[str]) -> bool:
    """Whether a clause ends with what its subject is said to be: `is polite`, `are introduced, cited`."""
    said = [word for word in clause[-4:] if word != "," and not _is_adverb(word)]
    places = [place for place, word in enumerate(said) if word in COPULAS]
    return bool(places) and 0 < len(said) - places[-1] - 1 <= 1 + clause[-4:].count(",")


def _prepositions(clause: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the same preposition opens both sides, or two follow one another: `for adults and for children`."""
    if right[0] not in PREPOSITIONS:
        return False
    return right[0] in clause or clause[-1] in PREPOSITIONS or (len(right) > 1 and right[1] in _ASKING)


def _things(clause: Sequence[str], right: Sequence[str], *, exact: bool) -> bool:
    """Whether two things must be found or done: one verb governs both, and the second is told like a thing."""
    finds = any(token in FINDING for token in clause)
    if "such" in clause or not (finds or _is_third(clause[0])):
        return False
    if not exact or "both" in clause or right[0] in (OPENERS if finds else OPENERS - _NUMBERS):
        return True
    # A thing of two words or more is one by itself; of a pair such as `salt and pepper` each is one word.
    ends = (place for place, word in enumerate(right) if word in PREPOSITIONS or not word[0].isalnum())
    if next(ends, len(right)) > 1 and right[0] not in _NUMBERS and not right[0].isdigit():
        return finds or "the" not in clause[-3:]
    return "," in clause[-3:-1]
