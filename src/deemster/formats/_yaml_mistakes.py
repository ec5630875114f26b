"""Says in plain words what a YAML parser says of a file that it cannot read."""

from __future__ import annotations

import yaml

_UNEVEN = (
    "this line is not indented like its neighbours: the keys of a map, and the items of a list, begin in one column"
)
_MISTAKES = {
    "did not find expected key": _UNEVEN,
    "did not find expected '-' indicator": _UNEVEN,
    "did not find expected <block end>": _UNEVEN,
    "block sequence entries are not allowed in this context": "the first item of a list begins on a line of its own",
    "found unknown escape character": "a backslash in double quotes begins an escape; single quotes keep it",
    "did not find expected node content": "a value is missing here",
    "found a tab character that violates indentation": "this line is indented with a tab; YAML takes spaces only",
    "found unexpected end of stream": "a quotation mark is not closed",
}
_BRACKETS = {
    "did not find expected ',' or '}'": "the `{`",
    "did not find expected ',' or ']'": "the `[`",
}


def describe_mistake(error: yaml.MarkedYAMLError, text: str) -> str:
    """What is wrong, without a full stop; what the parser says where no words for it are known.

    Args:
        error: What the parser raised.
        text: What it read.
    """
    problem = error.problem or error.context or "it cannot be parsed"
    mark = error.problem_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    start = error.context_mark

    if "escape code" in problem:
        return f"{problem} (a lone surrogate, or a pair of them: write the character itself)"
    if problem in _BRACKETS:
        where = "" if start is None else f" of line {start.line + 1}"
        return f"{_BRACKETS[problem]}{where} is not closed, or a comma is missing before this"
    if problem == "found unexpected end of stream" and start is not None:
        return f"the quotation mark of line {start.line + 1} is not closed"
    if problem == "could not find expected ':'" and start is not None:
        return f"the key of line {start.line + 1} needs a colon after it, as in `key: value`"
    if problem == "mapping values are not allowed in this context" and mark is not None:
        return "a value with a colon and a space in it is put in quotes" if ": " in line[: mark.column] else _UNEVEN
    if problem == "found character that cannot start any token" and mark is not None:
        character = line[mark.column : mark.column + 1]
        if character == "\t":
            return _MISTAKES["found a tab character that violates indentation"]
        return f"a value that begins with `{character}` is put in quotes"
    return _MISTAKES.get(problem, problem)
