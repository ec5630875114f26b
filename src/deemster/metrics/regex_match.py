"""The metric `regex`: matches patterns of users in linear time, by RE2."""

from __future__ import annotations

import functools
import re
from typing import Any, ClassVar, Literal

import re2

from deemster.errors import ConfigurationError, show_value
from deemster.metrics.builtin_metric import TextCheck, expected_text, invalid_sample
from deemster.records import Mark, Sample

_DELIMITERS = {"/": "/", "#": "#", "~": "~", "@": "@", "!": "!", "%": "%", "{": "}"}
# Of PCRE and of JavaScript; what follows the last slash and is none of them, such as `bin`, is the end of a path.
_FLAGS = frozenset("imsxuADSUXJn" + "gyvd")
_APPLIED = "imsU"
_WITHOUT_EFFECT = frozenset("uDS")
_ESCAPE = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
_CONSTRUCTS = (
    (r"operator: \(\?<?[=!]", "look-around"),
    (r"operator: \(\?>", "an atomic group"),
    (r"repetition operator: .*\+\Z", "a possessive quantifier"),
    (r"escape sequence: \\[1-9gk]", "a back-reference"),
    (r"operator: \(\?[a-zA-Z]*-?[a-zA-Z]*x", "the extended syntax (?x)"),
    (r"escape sequence: \\Z", r"\Z (write \z or $)"),
    (r"repetition size", "a count over 1000"),
)


class Regex(TextCheck, frozen=True, kw_only=True):
    r"""1 if the pattern is found anywhere in the output, else 0.

    Reads `expected_output` (a pattern of RE2), or the option `pattern`, and the output's text.
    Details: match, start, end (in characters, or null).

    `/x/i` is read as delimited where only flags follow the last slash, and so are `#x#i`, `~x~i`, `@x@i`, `!x!i`,
    `%x%i` and `{x}i`: `i m s U` apply, `u D S` change nothing, others are errors. `$` is the very end; `\d \w \s \b`
    are ASCII, `\p{L}` is any letter. Look-around, back-references, possessive and atomic groups do not exist in RE2: a
    pattern takes linear time.

    Options:
        pattern: One pattern for all samples. Default: each sample's `expected_output`.
        full: True: the whole output must match. Default: false.
        syntax: `auto` (the default), `plain` (they are characters) or `delimited`.
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `regex: {pattern: '/refund$/i'}` accepts `A Refund`.

    Worked examples:
        - {expected: 'RM-\d{4}', output: Your booking is RM-4471.}
        - {expected: 'RM-\d{4}', output: Your booking is RM-4471., options: {full: true}}
    """

    alias: ClassVar[str] = "regex"
    core: ClassVar[bool] = True

    pattern: str | None = None
    full: bool = False
    syntax: Literal["auto", "plain", "delimited"] = "auto"

    def validate(self) -> None:
        """Refuse a pattern that is none.

        Raises:
            ConfigurationError: The pattern is none.
        """
        if self.pattern is None:
            return
        if not isinstance(self.pattern, str):
            raise ConfigurationError(f"`pattern` of regex is text, not {show_value(self.pattern)}.")
        try:
            compile_pattern(self.pattern, self.syntax)
        except PatternError as error:
            raise ConfigurationError(f"`pattern` of regex: {error}") from None

    @property
    def needs(self) -> tuple[str, ...]:
        """The pattern, where the metric has none."""
        return super().needs if self.pattern is None else ()

    def expect(self, sample: Sample) -> Any:
        """The compiled pattern.

        Raises:
            UnscoredError: The pattern is none.
        """
        pattern = expected_text(sample) if self.pattern is None else self.pattern
        try:
            return compile_pattern(pattern, self.syntax)
        except PatternError as error:
            raise invalid_sample(str(error)) from None

    def grade(self, expected: Any, actual: str) -> Mark:
        """Search the text, or match the whole of it."""
        found = expected.fullmatch(actual) if self.full else expected.search(actual)
        if found is None:
            return self.mark(0.0, {"match": False, "start": None, "end": None})
        start, end = found.span()
        return self.mark(1.0, {"match": True, "start": start, "end": end})


class PatternError(ValueError):
    """A pattern that RE2 does not read."""


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str, syntax: str = "auto") -> Any:
    """Compile a pattern.

    Args:
        pattern: A pattern of RE2, or `/pattern/flags`.
        syntax: `auto`, `plain` or `delimited`.

    Raises:
        PatternError: The pattern is none, or holds what RE2 does not know.

    >>> compile_pattern("/b+/i").search("aBB").span()
    (1, 3)
    """
    body, flags = _parts(pattern, syntax)
    for letter in flags:
        if letter not in _APPLIED and letter not in _WITHOUT_EFFECT:
            raise PatternError(
                f"The pattern {pattern!r} has the flag `{letter}`, which RE2 does not know. Known: `i m s U`, and "
                f"`u D S`, which change nothing. Set `syntax: plain` if the `{pattern[0]}` belong to the pattern."
            )
    if any(escape[0] == r"\C" for escape in _ESCAPE.finditer(body)):
        raise PatternError(f"The pattern {pattern!r} holds \\C, a single byte; text is matched by characters here.")
    applied = "".join(letter for letter in _APPLIED if letter in flags)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{applied}){body}" if applied else body, options)
    except UnicodeEncodeError:
        raise PatternError(f"The pattern {pattern!r} is not valid Unicode.") from None
    except re2.error as error:
        raise PatternError(_complaint(pattern, body, error)) from None


def _parts(pattern: str, syntax: str) -> tuple[str, str]:
    """The pattern without its delimiters, and the flags behind them."""
    if syntax == "plain":
        return pattern, ""

    opening = pattern[:1]
    closing = _DELIMITERS.get(opening, "")
    last = pattern.rfind(closing) if closing else 0
    body, flags = pattern[1:last], pattern[last + 1 :]
    if syntax == "delimited":
        if last > 0:
            return body, flags
        raise PatternError(f"The pattern {pattern!r} is not delimited; `syntax: delimited` reads `/pattern/flags`.")

    letters = not flags or (flags.isascii() and flags.isalpha())
    path = opening == "/" and len(flags) > 1 and not _FLAGS.issuperset(flags)
    return (body, flags) if last > 0 and letters and not path else (pattern, "")


def _complaint(pattern: str, body: str, error: Exception) -> str:
    reason = error.args[0]
    reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    if reason.endswith("(?P") and ("(?P=" in body or "(?P>" in body):
        name: str | None = "a back-reference" if "(?P=" in body else "a subroutine call"
    else:
        name = next((name for sign, name in _CONSTRUCTS if re.search(sign, reason, re.DOTALL)), None)
    if name is None:
        return f"The pattern {pattern!r} cannot be read: {reason}."
    return f"The pattern {pattern!r} holds {name}, which RE2 does not know ({reason})."
