"""Reads YAML 1.2 core strictly: no tags, merge keys or duplicate keys; bounded aliases and depth.

The grammar is libyaml's; the meaning of scalars is the core schema of YAML 1.2: only `true` and `false` are booleans,
and dates, `12:30`, `yes` and `1_000` stay text. NEL, LS and PS are ordinary characters, as YAML 1.2 says.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

from deemster.formats._yaml_mistakes import describe_mistake
from deemster.formats.document import DEPTH, Document, Reading

ALIASED = 100_000
DIGITS = 4_000
_NUMBER_STARTS = frozenset("0123456789+-.tfnTFN~")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INT = re.compile(r"[-+]?[0-9]+")
_RADIX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BREAKS = re.compile("[\x85\u2028\u2029]")
_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def scalar(text: str) -> Any:
    """The value of an unquoted scalar by the core schema of YAML 1.2.

    Raises:
        ValueError: The number is not finite, or has too many digits.

    >>> [scalar(text) for text in ("yes", "true", "0o17", "017", "1e3", "2024-01-01", "~")]
    ['yes', True, 15, 17, 1000.0, '2024-01-01', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INT.fullmatch(text) or _RADIX.fullmatch(text):
        if len(text) > DIGITS:
            raise ValueError(f"The number has more than {DIGITS} digits. Quote it if it is text.")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise ValueError(f"`{text[:40]}` is too large for a number. Quote it if it is text.")
        return number
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"`{text}` is not a finite number. Quote it if it is text.")
    return text


def yaml_document(text: str, reading: Reading) -> Document:
    """Read one YAML document.

    Raises:
        InputError: The text is not YAML, or uses what is refused here; the place is given.
    """
    hidden = _hidden_breaks(text)
    if hidden:
        text = text.translate(hidden)
    builder = _Builder(reading, shown={ord(mask): chr(code) for code, mask in hidden.items()})
    try:
        value = builder.document(CParser(text))
    except yaml.reader.ReaderError:
        found = _FORBIDDEN.search(text)
        start = found.start() if found else 0
        line = text.count("\n", 0, start) + 1
        code = f"U+{ord(text[start]):04X}"
        reading.refuse(f"The character {code} cannot stand in YAML; write it as an escape in double quotes.", line=line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        reading.refuse(f"This is not YAML: {describe_mistake(error, text)}.", line=line, column=column)
    return Document(value, file=reading.file, places=builder.places)


def _hidden_breaks(text: str) -> dict[int, str]:
    """Stand-ins for NEL, LS and PS, which libyaml would take for line ends."""
    found = set() if text.isascii() else set(_BREAKS.findall(text))
    masks = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return {ord(character): next(masks) for character in sorted(found)}


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line


class _Builder:
    """Builds values from events of libyaml."""

    def __init__(self, reading: Reading, *, shown: dict[int, str]) -> None:
        self.reading = reading
        self.places: dict[int, Any] = {}
        self._shown = shown
        self._anchors: dict[str, Any] = {}
        self._aliased = 0

    def document(self, parser: Any) -> Any:
        """The value of the only document.

        Raises:
            InputError: There is no document, or more than one, or something in it is refused.
        """
        parser.get_event()
        start = parser.get_event()
        if not isinstance(start, yaml.DocumentStartEvent):
            self.reading.refuse("The file is empty.")
        if start.tags or start.version not in (None, (1, 2)):
            self.reading.refuse("Directives other than `%YAML 1.2` are not read.", line=_line(start))
        value = self._root(parser)
        parser.get_event()
        end = parser.get_event()
        if isinstance(end, yaml.DocumentStartEvent):
            self.reading.refuse("A second document starts here; a file holds one.", line=_line(end))
        return value

    def _root(self, parser: Any) -> Any:
        event = parser.get_event()
        if type(event) is ScalarEvent:
            return self._scalar(event)
        if type(event) is AliasEvent:
            return self._alias(event, [])
        top: list[Any] = []
        self.places[id(top)] = []
        self._fill(parser, event, top)
        del self.places[id(top)]
        return top[0]

    def _fill(self, parser: Any, event: Any, top: list[Any]) -> None:
        """Put the container that starts with an event, and all it holds, into a list."""
        next_event, places = parser.get_event, self.places
        stack: list[tuple[Any, Any]] = []
        holder: Any = top
        marks: Any = places[id(top)]
        key: str | None = None
        while True:
            kind = type(event)
            is_map = type(holder) is dict
            if is_map and key is None and kind is not yaml.MappingEndEvent:
                key = self._key(event, holder)
                marks[key] = event.start_mark.line + 1
                event = next_event()
                continue
            if kind is ScalarEvent:
                value = self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                value = self._opened(event, depth=len(stack) + 1)
            elif kind is AliasEvent:
                value = self._alias(event, [*(entry[0] for entry in stack[1:]), holder])
            else:
                holder, marks = stack.pop()
                if not stack:
                    return
                event = next_event()
                continue
            if is_map:
                holder[key], key = value, None
            else:
                holder.append(value)
                marks.append(event.start_mark.line + 1)
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                stack.append((holder, marks))
                holder, marks = value, places[id(value)]
            event = next_event()

    def _key(self, event: Any, holder: dict[str, Any]) -> str:
        line = event.start_mark.line + 1
        if type(event) is AliasEvent:
            key = self._alias(event, [])
        elif type(event) is ScalarEvent:
            if event.value == "<<" and event.implicit[0]:
                self.reading.refuse("Merge keys (`<<`) are not read; write the entries out.", line=line)
            key = self._scalar(event)
        else:
            self.reading.refuse("A key is text, not a map or a list.", line=line)
        if type(key) is not str:
            self.reading.refuse(f"The key `{event.value[:40] if type(event) is ScalarEvent else key}` is not text. "
                                f"Quote it.", line=line)  # fmt: skip
        if key in holder:
            self.reading.refuse(f"The key `{key[:80]}` is given twice.", line=line)
        return key

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag is not None:
            self._refuse_tag(event)
        if self._shown:
            text = text.translate(self._shown)
        value: Any = text
        if event.implicit[0] and (not text or text[0] in _NUMBER_STARTS):
            try:
                value = scalar(text)
            except ValueError as error:
                self.reading.refuse(str(error), line=event.start_mark.line + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _opened(self, event: Any, *, depth: int) -> Any:
        if event.tag is not None:
            self._refuse_tag(event)
        if depth > DEPTH:
            self.reading.refuse(f"Nesting goes deeper than {DEPTH}.", line=event.start_mark.line + 1)
        value: Any = {} if type(event) is MappingStartEvent else []
        self.places[id(value)] = {} if type(event) is MappingStartEvent else []
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _alias(self, event: Any, around: list[Any]) -> Any:
        line = event.start_mark.line + 1
        if event.anchor not in self._anchors:
            self.reading.refuse(f"No anchor `&{event.anchor}` comes before this alias.", line=line)
        value = self._anchors[event.anchor]
        if any(value is holder for holder in around):
            self.reading.refuse(f"The alias `*{event.anchor}` stands inside its own anchor.", line=line)
        pending = [(value, len(around) + 1)]
        while pending:
            part, depth = pending.pop()
            self._aliased += 1
            if self._aliased > ALIASED:
                self.reading.refuse(f"Too many aliases: they add more than {ALIASED:,} values.", line=line)
            if isinstance(part, (dict, list)):
                if depth > DEPTH:
                    self.reading.refuse(f"Nesting goes deeper than {DEPTH}.", line=line)
                pending += [(entry, depth + 1) for entry in (part.values() if isinstance(part, dict) else part)]
        return value

    def _refuse_tag(self, event: Any) -> None:
        self.reading.refuse(f"Tags are not read, here `{event.tag[:80]}`.", line=event.start_mark.line + 1)
