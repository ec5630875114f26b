"""One saved output, from what a file holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from deemster.errors import did_you_mean, listing
from deemster.formats.json_values import kind_of, value_issues
from deemster.records import Output, TargetFailure

SCHEMA = "deemster.outputs.v1"
KEYS = ("id", "output", "actual_output", "outputs", "error", "repetition", "trajectory", "retrieved", "usage", "model")
_ANSWERS = ("output", "actual_output", "outputs", "error")
_ROOT = ("schema_version", "outputs")
MOST_REPETITIONS = 1_000_000
Answer: TypeAlias = Output | TargetFailure


class EntryError(ValueError):
    """What is wrong with an entry.

    Attributes:
        message: What was found and what was expected.
        path: The keys to it.
        name: The id of the entry, where it is known.
    """

    def __init__(self, message: str, *, path: tuple[str | int, ...] = (), name: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.name = name


def root_issues(root: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Everything that is wrong with the root of a file of saved outputs, each with the path to it."""
    if not isinstance(root, dict):
        yield (), f"The root of saved outputs is a map with `outputs`, not {kind_of(root)}."
        return
    version = root.get("schema_version", SCHEMA)
    if version != SCHEMA:
        yield (
            ("schema_version",),
            f"schema_version `{str(version)[:80]}` is not supported. Supported: {listing([SCHEMA])}.",
        )
    for key in root:
        if key not in _ROOT:
            yield (key,), f"`{key}` is no key of saved outputs. {did_you_mean(key, _ROOT)}"
    if "outputs" not in root:
        yield (), "`outputs` is missing."
    elif not isinstance(root["outputs"], (dict, list)):
        yield ("outputs",), f"`outputs` is a map or a list, not {kind_of(root['outputs'])}."


def entry_answers(entry: Any, *, name: str | None) -> tuple[str, list[tuple[int, Answer]]]:
    """The id of an entry and its answers by repetition.

    Args:
        entry: A map; where the id stands outside, also a text or a list of texts.
        name: The id, where it stands outside the entry.

    Raises:
        EntryError: The entry is not what it should be.
    """
    if name is not None:
        if isinstance(entry, (str, list)):
            entry = {"outputs" if isinstance(entry, list) else "output": entry}
        if isinstance(entry, Mapping) and "id" in entry:
            raise EntryError("The id is the key; the entry gives it again.", path=("id",), name=name)
    if not isinstance(entry, Mapping):
        expected = "text, a list of texts or a map" if name is not None else "a map"
        hint = " Quote it." if isinstance(entry, (int, float)) else ""
        raise EntryError(f"A saved output is {expected}, not {kind_of(entry)}.{hint}", name=name)
    known = _name(entry.get("id") if name is None else name, given=name is not None or "id" in entry)
    for key in entry:
        if key not in KEYS:
            raise EntryError(
                f"`{key}` is no key of a saved output. {did_you_mean(str(key), KEYS)}", path=(key,), name=known
            )
    kinds = [key for key in _ANSWERS if key in entry]
    if len(kinds) != 1:
        said = f"gives {listing(kinds)}" if kinds else "gives none"
        raise EntryError(f"An entry has one of {listing(_ANSWERS)}; this one {said}.", name=known)
    return known, _answers(entry, kinds[0], known)


def _name(value: Any, *, given: bool) -> str:
    if not given:
        raise EntryError("The id is missing.")
    if not isinstance(value, str):
        hint = " Quote it." if isinstance(value, (int, float)) else ""
        raise EntryError(f"The id is a string, not {kind_of(value)}.{hint}", path=("id",))
    if not value.strip():
        raise EntryError("The id is blank.", path=("id",))
    return value


def _answers(entry: Mapping[str, Any], kind: str, name: str) -> list[tuple[int, Answer]]:
    repetition = entry.get("repetition", 0)
    if type(repetition) is not int or not 0 <= repetition < MOST_REPETITIONS:
        message = f"repetition is a whole number of at least 0, not {repetition!r:.40}."
        raise EntryError(message, path=("repetition",), name=name)
    value = entry[kind]
    if kind == "error":
        if not isinstance(value, str):
            raise EntryError(f"error is text, not {kind_of(value)}.", path=("error",), name=name)
        return [(repetition, TargetFailure(value))]
    if kind != "outputs":
        return [(repetition, _output(entry, value, (kind,), name))]
    if not isinstance(value, (list, tuple)) or not value:
        raise EntryError("`outputs` of an entry is a list of texts that is not empty.", path=("outputs",), name=name)
    if "repetition" in entry:
        raise EntryError("`outputs` holds all repetitions; leave `repetition` out.", path=("repetition",), name=name)
    return [(number, _output(entry, text, (kind, number), name)) for number, text in enumerate(value)]


def _output(entry: Mapping[str, Any], text: Any, path: tuple[str | int, ...], name: str) -> Output:
    if not isinstance(text, str):
        hint = "use `error` for a failure" if text is None else "quote it, or save JSON as text"
        raise EntryError(f"An output is text, not {kind_of(text)}: {hint}.", path=path, name=name)
    model = entry.get("model")
    if model is not None and not isinstance(model, str):
        raise EntryError(f"model is text, not {kind_of(model)}.", path=("model",), name=name)
    retrieved = entry.get("retrieved")
    if retrieved is not None:
        for place, message in value_issues(retrieved, ("retrieved",)):
            raise EntryError(message, path=place, name=name)
    try:
        return Output(text, retrieved, entry.get("trajectory"), entry.get("usage"), model)
    except ValueError as error:
        raise EntryError(str(error), name=name) from None
