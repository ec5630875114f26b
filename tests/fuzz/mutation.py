"""Hostile inputs made of valid ones: trees with wrong parts, texts with wrong bytes; the same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import yaml

DEEP = (*(2, 9, 98, 99, 101, 400) * 6, 5_000)


class Raw(str):
    """Raw text in place of a value."""

    __slots__ = ()


WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    -(2**63) - 1, [], {}, [[]], [None], {"": None}, {"a": {}}, "", " ", "x", "id", "\x00", "\x1b[31mred", "\u202egnp",
    "\ufeff", "é", "e\u0301", "\u2028", "\U0001f600", "\ue000", "١٢", "x" * 3_000, "a\r\nb", "\t", "=1+1",
    "::error::x", "${HOME}", "${X", "{{x}}", "/etc/passwd", "../../x", "file:///etc/passwd", "http://x.invalid",
    "NaN", "1e5", "null", "~", "12:30", "2024-01-01", "<script>", "a|b", "`", "%s%n", "MET", "CANNOT_ASSESS",
    "exact-match", "deemster.dataset.v1", "nan", "-inf", Raw("NaN"), Raw("-Infinity"), Raw("Infinity"), Raw("1e999"),
    Raw("-1e999"), Raw("1e-999"), Raw("9" * 400), Raw("9" * 4_500), Raw("0." + "3" * 600), Raw("-0"), Raw("00"),
    Raw("01"), Raw("+1"), Raw("0x10"), Raw("1_000"), Raw(".5"), Raw("1."), Raw("-"), Raw('"\\ud800"'),
    Raw('"\\udc00\\ud800"'), Raw('"\\ud83d\\ude00"'), Raw('"\\u0000"'), Raw('"\\x41"'), Raw('"\t"'), Raw('"'),
    Raw("'"), Raw("{"), Raw("["), Raw("}"), Raw("]"), Raw(""), Raw(","), Raw("{,}"), Raw('{"a" 1}'), Raw("[1,]"),
    Raw("nul"), Raw('{"a": 1, "a": 2}'), Raw('{"a": 1, "\\u0061": 2}'), Raw("tru"), Raw("undefined"), Raw("1 2"),
    Raw("/**/1"),
)  # fmt: skip
YAMLISH: tuple[Any, ...] = (
    Raw("*a"), Raw("&a x"), Raw("&a [*a]"), Raw("&a [1, 2]"), Raw("!!python/object/apply:os.system [true]"),
    Raw("!x y"), Raw("!!binary aGk="), Raw("{<<: {a: 1}}"), Raw("? a"), Raw("- - - a"), Raw("|\n  a\n b"),
    Raw(">-\n"), Raw("'a\n\n  b'"), Raw("@x"), Raw("%x"), Raw("`x`"), Raw("a: b: c"), Raw("[a, b"), Raw("{a: b"),
    Raw("---\na"), Raw("...\n"), Raw("# c"), Raw("0o17"), Raw("0b1"), Raw(".inf"), Raw(".nan"), Raw("{1: 2}"),
    Raw("{[a]: 2}"), Raw("{null: 2}"), Raw("a #b"), Raw("\t- a"),
)  # fmt: skip
PIECES: tuple[bytes, ...] = (
    b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80",
    b"\xe2\x80\xa8", b"\xc2\x85", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\x1b[2J", b'"', b"'", b"\\", b"\\u",
    b"\\ud800", b"\\u0000", b"{", b"}", b"[", b"]", b":", b",", b"-", b"#", b"&a ", b"*a", b"!!x ", b"<<: ", b"---\n",
    b"...\n", b"%YAML 1.1\n", b"? ", b"| ", b">\n", b"NaN", b"Infinity", b"1e999", b"9" * 30, b"null", b"true", b"~",
    b"[" * 150, b'{"a":' * 150, b"- " * 150, b"\xf0\x9f\x98\x80", b"\xe2\x80\xae", b"``", b"(", b")", b"*", b"+",
    b"?", b"=", b"/", b";", b"\x85", b"\xa0", b"0", b"-0", b".", b"e",
)  # fmt: skip

Strike = Callable[[Any, random.Random], Any]


def _wrong(_: Any, chance: random.Random) -> Any:
    return chance.choice(WRONG)


def _wrapped(value: Any, chance: random.Random) -> Any:
    depth = chance.choice(DEEP)
    text = json.dumps(value) if chance.random() < 0.5 else "1"
    opening, closing = ("[", "]") if chance.random() < 0.5 else ('{"a":', "}")
    return Raw(opening * depth + text + closing * (depth if chance.random() < 0.9 else depth - 1))


def _edited(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    kind = chance.randrange(5)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + chance.choice("\x00\x1b\u202e \n\"'\\:#{}[],é\u0301\ue000") + text[at:]
    return (text[:at], text.swapcase(), text * chance.choice((2, 50)))[kind - 2]


def _changed(value: Any, chance: random.Random) -> Any:
    """A changed value of the same type."""
    if isinstance(value, str):
        return _edited(value, chance)
    if isinstance(value, dict):
        pairs = list(value.items())
        key, entry = chance.choice(pairs) if pairs else ("a", 1)
        made = (
            [pair for pair in pairs if pair[0] != key],
            [*pairs, (key, entry)],
            [(_edited(name, chance) if name == key else name, part) for name, part in pairs],
            [*pairs, (chance.choice(("x", "", "schema_version", "id", "samples", "items", "metadata")), entry)],
            [(name, entry) for name, _ in pairs],
            pairs[::-1],
            [*pairs, (key, None)],
        )
        return _Pairs(chance.choice(made))
    if isinstance(value, list):
        if not value:
            return [None]
        at = chance.randrange(len(value))
        made = (value[:at] + value[at + 1 :], [*value, value[at]], value * 30, value[::-1], [], value[at])
        return chance.choice(made)
    if isinstance(value, bool) or value is None:
        return chance.choice((str(value), 0, [value]))
    return chance.choice((-value, value + 0.5, str(value), [value], value * 10**9, Raw(f"{value}e308"), bool(value)))


class _Pairs:
    """A map that may repeat a key."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class Writer:
    """Writes a tree as JSON or YAML, with some of its nodes struck.

    Args:
        chance: Where every choice comes from.
        pool: Parts of other documents, which may take a node's place.
        yaml: Whether YAML is written.
    """

    def __init__(self, chance: random.Random, pool: Sequence[Any], *, yaml: bool) -> None:
        self._chance, self._pool, self._yaml = chance, pool, yaml
        self._at = 0
        self._struck: list[int] = []
        self._sizes = {id(part): sum(1 for _ in parts(part)) for part in pool if isinstance(part, (dict, list))}

    def text(self, tree: Any) -> str:
        """The text of a tree with a few wrong nodes."""
        chance = self._chance
        self._at = 0
        nodes = self._sizes.get(id(tree), 1)
        self._struck = [chance.randrange(nodes) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        if self._yaml and chance.random() < 0.8:
            return self._block(self._node(tree), 0)
        return self._flow(self._node(tree))

    def _node(self, value: Any) -> Any:
        at = self._at
        self._at += 1
        if at not in self._struck:
            return value
        chance = self._chance
        kind = chance.random()
        if kind < 0.45:
            return _changed(value, chance)
        if kind < 0.75:
            return chance.choice(YAMLISH if self._yaml and chance.random() < 0.5 else WRONG)
        return chance.choice(self._pool) if kind < 0.93 else _wrapped(value, chance)

    def _pairs(self, value: Any) -> list[tuple[str, Any]]:
        return value.pairs if isinstance(value, _Pairs) else list(value.items())

    def _flow(self, value: Any) -> str:
        kind = type(value)
        if kind is Raw:
            return str(value)
        size = self._sizes.get(id(value), 0)
        if size and not any(self._at <= at < self._at + size for at in self._struck):
            self._at += size - 1
            return json.dumps(value)
        if kind is dict or kind is _Pairs:
            entries = (f"{json.dumps(key)}: {self._flow(self._node(entry))}" for key, entry in self._pairs(value))
            return "{" + ", ".join(entries) + "}"
        if kind is list:
            return "[" + ", ".join([self._flow(self._node(entry)) for entry in value]) + "]"
        return json.dumps(value, ensure_ascii=self._at % 2 == 0)

    def _block(self, value: Any, indent: int) -> str:
        kind = type(value)
        if indent > 8 or kind not in (dict, list, _Pairs) or not (value.pairs if kind is _Pairs else value):
            if kind is str and value.isalnum() and self._at % 3:
                return value
            return self._flow(value)
        space = "\n" + " " * indent
        if kind is list:
            return space + space.join(f"- {self._block(self._node(entry), indent + 2)}" for entry in value)
        lines = [f"{_key(key)}: {self._block(self._node(entry), indent + 2)}" for key, entry in self._pairs(value)]
        return space + space.join(lines)


def _key(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else json.dumps(name)


def struck(data: bytes, other: bytes, chance: random.Random, pieces: Sequence[bytes]) -> bytes:
    """A text with wrong bytes: cut, spliced with another, with pieces put in, taken out or repeated."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        size = chance.choice((1, 2, 4, 16, 64))
        kind = chance.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + data[at + size :]
        elif kind == 2:
            data = data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :]
        elif kind == 3:
            start = chance.randrange(len(other) + 1)
            data = data[:at] + other[start : start + size]
        elif kind == 4:
            data = data[:at] + data[at : at + size] * chance.choice((2, 3, 40)) + data[at + size :]
        else:
            data = data[:at] + chance.choice(pieces) + data[at + (size if kind == 7 else 0) :]
    return data


def parts(value: Any) -> Iterator[Any]:
    yield value
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(entry)


def trees_of(data: bytes, kind: str) -> list[Any]:
    """The trees of a valid document, one for each line of JSONL; none if the document is a broken one of the corpus."""
    try:
        if kind == "yaml":
            return [yaml.load(data, Loader=yaml.CSafeLoader)]
        if kind == "jsonl":
            return [json.loads(line) for line in data.splitlines() if line.strip()]
        return [json.loads(data)] if kind == "json" else []
    except (ValueError, RecursionError, yaml.YAMLError):
        return []


def inputs(
    corpus: Sequence[bytes], kind: str, *, seed: int, count: int, pieces: Sequence[bytes] = ()
) -> Iterator[bytes]:
    """Hostile inputs: the corpus itself, then changed documents.

    Args:
        corpus: Documents to begin with.
        kind: `json`, `jsonl` or `yaml`, whose trees are known; otherwise texts and bytes are changed.
        seed: Chooses everything.
        count: How many inputs.
        pieces: What a grammar is made of, put in beside what is odd everywhere.
    """
    chance = random.Random(seed)
    forest = [trees for data in corpus if (trees := trees_of(data, kind))]
    pool = [part for trees in forest for tree in trees for part in parts(tree)]
    writer = Writer(chance, pool, yaml=kind == "yaml")
    known = (*PIECES, *pieces, *pieces)
    yield from corpus[:count]
    for _ in range(count - len(corpus)):
        way = chance.random()
        if way < 0.03:
            yield chance.randbytes(chance.choice((1, 8, 60, 300)))
        elif way < 0.5 or not forest:
            yield struck(chance.choice(corpus), chance.choice(corpus), chance, known)
        else:
            trees = chance.choice(forest)
            at = chance.randrange(len(trees))
            lines = [writer.text(tree) if place == at else json.dumps(tree) for place, tree in enumerate(trees)]
            yield "\n".join(lines).encode("utf-8", "surrogatepass")
