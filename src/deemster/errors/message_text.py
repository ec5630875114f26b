"""Formats text from data, values, names and counts for messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile("[ \t\r\n\v\f]+")
_WORD = re.compile(r"[^\W_]+")
_MOST_RELATED = 3
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)

# JSON escapes those below a space itself, and has line breaks outside of texts.
_HIDDEN_IN_JSON = re.compile(_HIDDEN.pattern.replace("\x00-\x1f", ""))


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str, *, limit: int | None = None) -> str:
    r"""Make text from data safe to print on one line.

    Lone surrogates become U+FFFD, runs of white space one space; control, bidi, zero-width and tag characters are shown
    as escapes, so that no terminal sequence survives.

    Args:
        text: Anything a dataset, model or file may hold.
        limit: Longest result; what is cut is replaced by an ellipsis.

    >>> visible("a\x1b[31m\nb")
    'a\\x1b[31m b'
    """
    if not (text.isascii() and text.isprintable() and "  " not in text):
        text = _SPACE.sub(" ", _SURROGATE.sub("\ufffd", text))
        text = _HIDDEN.sub(_shown, text)
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return text


# An agent obeys `##vso[` and `##[` anywhere in a line, and `::` at the start of one.
_CI_COMMAND = re.compile(r"##(?=[A-Za-z]*\[)|(?:\A|(?<=[\r\n]))[^\S\r\n]*::")
_MARKUP = ("html", "junit", "junit-samples", "md", "github", "pr-comment")
_CI_ESCAPES = {"json": "\\u{:04x}", **dict.fromkeys(_MARKUP, "&#{};")}


def break_ci_commands(text: str, *, format: str = "text") -> str:  # noqa: A002 - what formats are called
    r"""Make text that is printed harmless for the agents of CI services, which obey commands in what they read.

    One character of a command becomes an escape of the format. JSON, XML and HTML say the same as before. In JSON,
    hidden characters become escapes too, for a terminal would obey them.

    Args:
        text: Whole lines of what is printed.
        format: What they are: `json`, one of the formats in `_MARKUP`, or anything else for plain text.

    >>> break_ci_commands("a ##vso[task.complete]\n::error::b ::c")
    'a #\\x23vso[task.complete]\n:\\x3aerror::b ::c'
    >>> break_ci_commands('{"id": "##[error]"}', format="json")
    '{"id": "#\\u0023[error]"}'
    """
    if format == "json":
        text = _HIDDEN_IN_JSON.sub(_json_escape, text)
    escape = _CI_ESCAPES.get(format, "\\x{:02x}")
    # The character to escape is the last one of a match.
    return _CI_COMMAND.sub(lambda match: match[0][:-1] + escape.format(ord(match[0][-1])), text)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def show_value(value: object) -> str:
    """Write a value for a message, as Python writes it; a value that Python refuses to write is only named.

    >>> show_value("a"), show_value(10**5000)
    ("'a'", 'a number')
    """
    try:
        return repr(value)
    except (ValueError, RecursionError):
        # Python refuses integers of more than 4,300 digits and nesting that is too deep.
        return "a number" if isinstance(value, int) else "a list" if isinstance(value, (list, tuple)) else "a map"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one most likely meant, or None."""
    import difflib  # noqa: PLC0415 - only a misspelt word needs it

    found = difflib.get_close_matches(word.casefold(), list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown word: the nearest known one, else those that share a word, else all.

    >>> did_you_mean("hit-rate", ["exact-match", "hit", "recall"])
    'Did you mean `hit`?'
    """
    names = list(known)
    guess = nearest(word, names)
    if guess is not None:
        return f"Did you mean `{guess}`?"

    related = [name for name in names if not _words(name).isdisjoint(_words(word))]
    whole = [name for name in related if _words(name) <= _words(word)]
    if whole or 0 < len(related) <= _MOST_RELATED:
        return f"Did you mean {' or '.join(f'`{name}`' for name in (whole or related)[:_MOST_RELATED])}?"
    return f"Known: {list_names(names)}."


def _words(name: str) -> set[str]:
    """The words of a name."""
    return {*_WORD.findall(name.casefold())}


def list_names(names: Iterable[str], *, limit: int = 20) -> str:
    """Names in backticks, separated by commas, cut with a count."""
    every = list(names)
    shown = ", ".join(f"`{name}`" for name in every[:limit])
    return f"{shown} and {len(every) - limit} more" if len(every) > limit else shown


def list_first(names: Sequence[str], count: int) -> str:
    """The first of some names as people list them, and how many more there are.

    Args:
        names: The first names; one at least.
        count: How many there are in all.

    >>> list_first(["q2"], 1), list_first(["q2", "q10"], 2), list_first(["q2", "q10"], 12)
    ('q2', 'q2 and q10', 'q2, q10 and 10 more')
    """
    listed = [*names, f"{count - len(names):,} more"] if count > len(names) else [*names]
    *first, last = listed
    return f"{', '.join(first)} and {last}" if first else last


def plural(count: int, noun: str) -> str:
    """A count and its noun, in the singular or plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
