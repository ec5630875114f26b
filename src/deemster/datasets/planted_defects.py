"""Plants one known defect in a good output: a swapped entity, a changed number, a dropped citation, broken JSON."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from deemster.formats.canonical_json import json_text
from deemster.records import Output, Sample, ToolCall, Trajectory

_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_CITATION = re.compile(r"\[[^\[\]\n]{1,60}\]")
_ENTITY = re.compile(r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*\s*")
_WORD = re.compile(r"\w+")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|may|must|will|would|should|could|does|do|did|has|have|had)\b", re.IGNORECASE
)
_NEGATION = re.compile(r"\b(?:is|are|was|were|can|may|must|will|would|should|could|does|do|did|has|have|had) not\b|"
                       r"\b(?:cannot|never)\b", re.IGNORECASE)  # fmt: skip
_YES_OR_NO = re.compile(r"^(yes|no)(?=[,.;:!]|\s*$)", re.IGNORECASE)
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)
_REFUSALS = (
    "I am sorry, but I cannot help with that.",
    "I cannot answer this question.",
    "Unfortunately I am not able to assist with this request.",
)
_UNSUPPORTED = (
    "A survey of 4,200 people in Lisbon confirmed this in 2019.",
    "The rule was introduced by the Carver committee in 1987.",
    "An exception is made for holders of a blue card.",
)
# Word by word, which is how a reader notices the wrong language; no translator is at hand.
_GERMAN = {
    "a": "ein", "above": "über", "after": "nach", "all": "alle", "an": "ein", "and": "und", "are": "sind", "as": "als",
    "at": "bei", "be": "sein", "before": "vor", "but": "aber", "by": "von", "can": "kann", "cannot": "kann nicht",
    "costs": "kostet", "day": "Tag", "days": "Tage", "do": "tun", "every": "jeden", "for": "für", "free": "kostenlos",
    "from": "von", "has": "hat", "have": "haben", "hours": "Stunden", "if": "wenn", "in": "in", "is": "ist", "it": "es",
    "may": "darf", "more": "mehr", "must": "muss", "my": "mein", "no": "nein", "not": "nicht", "of": "von", "on": "auf",
    "one": "ein", "or": "oder", "our": "unser", "out": "aus", "send": "senden", "that": "dass", "the": "die",
    "them": "sie", "then": "dann", "this": "dies", "to": "zu", "two": "zwei", "until": "bis", "up": "auf", "us": "uns",
    "was": "war", "we": "wir", "week": "Woche", "weeks": "Wochen", "when": "wenn", "will": "wird", "with": "mit",
    "within": "innerhalb", "year": "Jahr", "yes": "ja", "you": "Sie", "your": "Ihr",
}  # fmt: skip
_FEWEST_TRANSLATED = 3
_TRIES = 20


class GoodOutput(NamedTuple):
    """A sample with an output that is taken to be good."""

    sample: Sample
    output: Output


class OutputPool:
    """What the good outputs of a dataset hold, for defects that take something from another sample.

    Args:
        goods: All samples with their good outputs.
    """

    def __init__(self, goods: Iterable[GoodOutput]) -> None:
        self._goods = list(goods)

    @functools.cached_property
    def texts(self) -> list[str]:
        """The distinct texts, in order."""
        return sorted({good.output.text for good in self._goods})

    @functools.cached_property
    def names(self) -> list[str]:
        """The distinct names of people, places and things in the texts, in order."""
        return sorted({match[0] for text in self.texts for match in _entities(text)})


class PlantedDefect(NamedTuple):
    """A kind of defect.

    Attributes:
        name: What users call it.
        what: What is wrong with an output that has it, in a few words.
        plant: Gives the output with the defect; None where it cannot be planted.
    """

    name: str
    what: str
    plant: Callable[[GoodOutput, OutputPool, Random], Output | None]


def plant_defect(defect: PlantedDefect, good: GoodOutput, pool: OutputPool, *, seed: int) -> Output | None:
    """An output with one defect; None where the defect is not applicable, and never the output as it was.

    Args:
        defect: The kind of defect.
        good: The sample and its good output.
        pool: What the good outputs of the dataset hold; other names and answers come from there.
        seed: Chooses where there is a choice. The choice for a sample does not depend on the other samples' choices.
    """
    drawn = Random(f"{seed}/{defect.name}/{good.sample.id}")  # noqa: S311 - a seeded choice, no secret
    planted = defect.plant(good, pool, drawn)
    return None if planted == good.output else planted


def reference_output(sample: Sample) -> Output | None:
    """The output that a sample expects: its text, and what its metadata expects of retrieval and tools.

    None where the sample has no expected output.
    """
    expected = sample.expected_output
    if expected is None:
        return None
    text = expected if isinstance(expected, str) else json_text(expected)
    return Output(text, retrieved=_relevant_ids(sample), trajectory=_expected_trajectory(sample))


def output_passages(sample: Sample, output: Output) -> list[str]:
    """The texts that an answer can rest on: those that were retrieved, and the context of the sample."""
    context = [sample.input.get("context"), sample.metadata.get("context")]
    listed = [entry for each in context for entry in (each if isinstance(each, (list, tuple)) else [each])]
    # What was retrieved may be ids alone, which are no texts.
    listed += [entry for entry in output.retrieved or () if isinstance(entry, Mapping)]
    texts = [entry.get("text") if isinstance(entry, Mapping) else entry for entry in listed]
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _relevant_ids(sample: Sample) -> list[str] | None:
    given = sample.metadata.get("relevant")
    if isinstance(given, Mapping):
        gains = {str(key): gain for key, gain in given.items() if isinstance(gain, (int, float)) and gain > 0}
        return sorted(gains, key=lambda key: -gains[key]) or None
    return [str(each) for each in given] or None if isinstance(given, (list, tuple)) else None


def _expected_trajectory(sample: Sample) -> Trajectory | None:
    given = sample.metadata.get("trajectory")
    if not isinstance(given, Mapping):
        return None
    names = _names(given.get("order")) or _names(given.get("tools"))
    names += [name for name in _names(given.get("tools")) if name not in names]
    entries = [entry for entry in given.get("tool_arguments") or () if isinstance(entry, Mapping)]
    calls = []
    for name in names:
        place = next((place for place, entry in enumerate(entries) if entry.get("tool") == name), None)
        calls.append(ToolCall(name, {} if place is None else entries.pop(place).get("arguments") or {}))
    calls += [ToolCall(str(entry["tool"]), entry.get("arguments") or {}) for entry in entries if entry.get("tool")]
    return Trajectory(
        tool_calls=tuple(calls), steps=len(calls), approvals=tuple(_names(given.get("requires_approval")))
    )


def _names(value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else []
    return [name for name in names if isinstance(name, str) and name.strip()]


def _with_text(output: Output, text: str | None) -> Output | None:
    return None if text is None else msgspec.structs.replace(output, text=text)


def _in_text(
    change: Callable[[str, Random], str | None],
) -> Callable[[GoodOutput, OutputPool, Random], Output | None]:
    """A defect of the text alone."""

    def plant(good: GoodOutput, _: OutputPool, drawn: Random) -> Output | None:
        return _with_text(good.output, change(good.output.text, drawn))

    return plant


def _replace(text: str, place: re.Match[str], by: str) -> str:
    by = by[0].upper() + by[1:] if place[0][0].isupper() and by[0].islower() else by
    return text[: place.start()] + by + text[place.end() :]


def _outside_citations(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    cited = [(match.start(), match.end()) for match in _CITATION.finditer(text)]
    return [
        match
        for match in pattern.finditer(text)
        if not any(start < match.end() and match.start() < end for start, end in cited)
    ]


def _entities(text: str) -> list[re.Match[str]]:
    """Names in a text: capitalised words that do not begin a sentence."""
    found = []
    for match in _outside_citations(_ENTITY, text):
        before = text[: match.start()].rstrip()
        if before and before[-1] not in ".!?:;\"'([-*#" and match[0] != "I" and match.start() == len(before) + 1:
            found.append(match)
    return found


def _swap_entity(good: GoodOutput, pool: OutputPool, drawn: Random) -> Output | None:
    text = good.output.text
    here = _entities(text)
    if not here:
        return None
    name = _choose(pool.names, drawn, lambda name: name not in text)
    return None if name is None else _with_text(good.output, _replace(text, drawn.choice(here), name))


def _choose(values: Sequence[str], drawn: Random, fits: Callable[[str], bool]) -> str | None:
    """A value that fits, drawn at random; None where none does. Most values fit, so few are looked at."""
    for _ in range(_TRIES if values else 0):
        if fits(value := drawn.choice(values)):
            return value
    fitting = [value for value in values if fits(value)]
    return drawn.choice(fitting) if fitting else None


def change_number(text: str, drawn: Random) -> str | None:
    """A text in which one number is another one, in digits or as a word; None where it has none.

    >>> change_number("It takes 5 days.", Random(1)) in [f"It takes {n} days." for n in (3, 4, 6, 7, 8, 15)]
    True
    """
    digits = _outside_citations(_NUMBER, text)
    if digits:
        place = drawn.choice(digits)
        return _replace(text, place, _other_number(place[0], drawn))
    words = _outside_citations(_NUMBER_WORD, text)
    if not words:
        return None
    place = drawn.choice(words)
    return _replace(text, place, drawn.choice([word for word in _NUMBER_WORDS if word != place[0].lower()]))


def _other_number(number: str, drawn: Random) -> str:
    """Another number that is written the same way: one group of its digits differs, and not by a leading zero."""
    head = re.match(r"\d+", number)
    first = head[0] if head is not None else number
    steps = [int(first) + step for step in (-2, -1, 1, 2, 3, 10) if int(first) + step > 0]
    return str(drawn.choice(steps)).rjust(len(first), "0") + number[len(first) :]


def _negate(text: str, drawn: Random) -> str | None:
    answer = _YES_OR_NO.match(text)
    if answer is not None:
        return _replace(text, answer, "no" if answer[0].lower() == "yes" else "yes")
    negated = list(_NEGATION.finditer(text))
    if negated:
        place = drawn.choice(negated)
        words = {"cannot": "can", "never": "always"}
        return _replace(text, place, words.get(place[0].lower(), place[0][: -len(" not")]))
    places = list(_AUXILIARY.finditer(text))
    if not places:
        return None
    place = drawn.choice(places)
    return f"{text[: place.end()]} not{text[place.end() :]}"


def _drop_citation(text: str, drawn: Random) -> str | None:
    places = list(_CITATION.finditer(text))
    if not places:
        return None
    place = drawn.choice(places)
    return text[: place.start()].rstrip(" ") + text[place.end() :]


def _move_citation(text: str, drawn: Random) -> str | None:
    places = list(_CITATION.finditer(text))
    pairs = [(one, two) for one in places for two in places if one.start() < two.start() and one[0] != two[0]]
    if pairs:
        one, two = drawn.choice(pairs)
        return text[: one.start()] + two[0] + text[one.end() : two.start()] + one[0] + text[two.end() :]
    parts = _sentences(text)
    cited = [place for place, part in enumerate(parts) if _CITATION.search(part)]
    free = [place for place in range(len(parts)) if place not in cited]
    if not cited or not free:
        return None
    source, goal = drawn.choice(cited), drawn.choice(free)
    marker = _CITATION.search(parts[source])
    if marker is None:
        return None
    parts[source] = parts[source][: marker.start()].rstrip(" ") + parts[source][marker.end() :]
    body = parts[goal].rstrip()
    end = len(body.rstrip(".!?"))
    parts[goal] = f"{body[:end]} {marker[0]}{parts[goal][end:]}"
    return "".join(parts)


def _sentences(text: str) -> list[str]:
    """The sentences of a text, each with the space behind it."""
    return [part for part in _SENTENCE.findall(text) if part.strip()]


def _leave_passage_unused(good: GoodOutput, _: OutputPool, drawn: Random) -> Output | None:
    passages = [set(map(str.casefold, _WORD.findall(text))) for text in output_passages(good.sample, good.output)]
    parts = _sentences(good.output.text)
    if not passages or len(parts) < 2:
        return None
    words = [set(map(str.casefold, _WORD.findall(part))) for part in parts]
    overlap = [max(len(own & passage) / len(own) if own else 0.0 for passage in passages) for own in words]
    best = drawn.choice([place for place, value in enumerate(overlap) if value == max(overlap)])
    if not overlap[best]:
        return None
    return _with_text(good.output, "".join(part for place, part in enumerate(parts) if place != best).strip())


def _lose_passage(good: GoodOutput, _: OutputPool, __: Random) -> Output | None:
    """The best relevant passage is not among those that were retrieved."""
    relevant, retrieved = set(_relevant_ids(good.sample) or ()), good.output.retrieved
    if not relevant or not isinstance(retrieved, (list, tuple)):
        return None
    ids = [str(entry.get("id")) if isinstance(entry, Mapping) else str(entry) for entry in retrieved]
    place = next((place for place, each in enumerate(ids) if each in relevant), None)
    if place is None:
        return None
    return msgspec.structs.replace(good.output, retrieved=[*retrieved[:place], *retrieved[place + 1 :]])


def _truncate(text: str, _: Random) -> str | None:
    words = text.split(" ")
    return " ".join(words[: len(words) // 2]) if len(words) >= 4 else None


def _other_answer(good: GoodOutput, pool: OutputPool, drawn: Random) -> Output | None:
    return _with_text(good.output, _choose(pool.texts, drawn, lambda text: text != good.output.text))


def _refuse(good: GoodOutput, _: OutputPool, drawn: Random) -> Output | None:
    is_wanted = good.sample.metadata.get("refusal_expected") is True
    return None if is_wanted else _with_text(good.output, drawn.choice(_REFUSALS))


def _translate(text: str, _: Random) -> str | None:
    count = 0

    def other(word: re.Match[str]) -> str:
        nonlocal count
        found = _GERMAN.get(word[0].lower())
        if found is None:
            return word[0]
        count += 1
        return found.capitalize() if word[0][0].isupper() else found

    translated = _WORD.sub(other, text)
    return translated if count >= _FEWEST_TRANSLATED else None


def _add_sentence(text: str, drawn: Random) -> str | None:
    if not text.strip() or _is_json(text):
        return None
    end = "" if text.rstrip()[-1] in ".!?" else "."
    return f"{text.rstrip()}{end} {drawn.choice(_UNSUPPORTED)}"


def _break_json(text: str, _: Random) -> str | None:
    return text.rstrip()[:-1] if _is_json(text) else None


def _is_json(text: str) -> bool:
    if not text.strip().startswith(("{", "[")):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _leave_out_tool_call(good: GoodOutput, _: OutputPool, drawn: Random) -> Output | None:
    trajectory = good.output.trajectory
    if trajectory is None or not trajectory.tool_calls:
        return None
    calls = list(trajectory.tool_calls)
    del calls[drawn.randrange(len(calls))]
    return msgspec.structs.replace(good.output, trajectory=msgspec.structs.replace(trajectory, tool_calls=tuple(calls)))


DEFECTS: dict[str, PlantedDefect] = {
    defect.name: defect
    for defect in (
        PlantedDefect("entity-swapped", "a name is that of something else", _swap_entity),
        PlantedDefect("number-changed", "a number is another one", _in_text(change_number)),
        PlantedDefect("negation", "a statement says the opposite", _in_text(_negate)),
        PlantedDefect("citation-dropped", "a citation is missing", _in_text(_drop_citation)),
        PlantedDefect("citation-moved", "a citation stands behind another statement", _in_text(_move_citation)),
        PlantedDefect("passage-not-used", "the sentence that rests on a passage is missing", _leave_passage_unused),
        PlantedDefect("passage-not-retrieved", "the best relevant passage was not retrieved", _lose_passage),
        PlantedDefect("truncation", "the second half is missing", _in_text(_truncate)),
        PlantedDefect("other-answer", "it is the answer to another sample", _other_answer),
        PlantedDefect("refusal", "it refuses to answer", _refuse),
        PlantedDefect("wrong-language", "common words are German", _in_text(_translate)),
        PlantedDefect("unsupported-sentence", "a sentence is added that nothing supports", _in_text(_add_sentence)),
        PlantedDefect("broken-json", "its JSON does not end", _in_text(_break_json)),
        PlantedDefect("tool-call-missing", "a tool was not called", _leave_out_tool_call),
    )
}
