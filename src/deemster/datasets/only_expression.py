"""Which samples are wanted: the small language of `--only`, and of the parts of datasets that runs remember."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from deemster.errors import ConfigurationError, Issue, did_you_mean

# The run that `failed` speaks of where it names none: the latest of the suite.
LATEST = ""
_TAG, _ID, _FAILED, _ANSWERED = "tag", "id", "failed", "answered"
_WORDS = (_TAG, _ID, _FAILED, _ANSWERED)
_METADATA, _INPUT = "metadata.", "input."
_META = "meta."
_KNOWN = "`tag:x`, `id:q*`, `KEY=VALUE` for metadata, `input.KEY=VALUE`, `failed`, `failed:RUN` and `answered`"


class Only(NamedTuple):
    """Which samples are wanted. Several of one kind are alternatives; what is of another kind must hold too.

    Attributes:
        tags: A tag that they have.
        ids: Their id, or a pattern such as `q*`.
        where: By the path of a key, such as `metadata.lang`, its value.
        failed: A run in which they did not pass; `LATEST` for the latest one of the suite.
        answered: Whether they must have an output.
    """

    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    where: Mapping[str, Sequence[Any]] = {}
    failed: tuple[str, ...] = ()
    answered: bool = False


def parse_only(expressions: Iterable[str]) -> Only:
    """What `--only` says, of all its values.

    >>> parse_only(["tag:policy", "lang=de", "lang=fr"])
    Only(tags=('policy',), ids=(), where={'metadata.lang': ['de', 'fr']}, failed=(), answered=False)

    Raises:
        ConfigurationError: One of them says nothing that is known; every issue is given.
    """
    tags: list[str] = []
    ids: list[str] = []
    where: dict[str, list[str]] = {}
    failed: list[str] = []
    answered = False
    issues = []

    for text in expressions:
        kind, colon, value = text.partition(":")
        key, sign, wanted = text.partition("=")
        if kind == _TAG and value:
            tags.append(value)
        elif kind == _ID and value:
            ids.append(value)
        elif kind == _FAILED and (value or not colon):
            failed.append(value)
        elif text == _ANSWERED:
            answered = True
        elif sign and key and key not in _WORDS:
            where.setdefault(_path(key), []).append(wanted)
        else:
            issues.append(Issue(_explain(text, key if sign else kind)))

    if issues:
        raise ConfigurationError(issues)
    return Only(tuple(tags), tuple(ids), where, tuple(failed), answered)


def condition_text(only: Only) -> str:
    """What is wanted, as flags of a command; `parse_only` reads the same from them.

    >>> condition_text(Only(tags=("policy",), where={"metadata.lang": ["de"], "metadata.id": [7]}))
    '--only tag:policy --only lang=de --only meta.id=7'
    """
    expressions = [f"{_FAILED}:{run}" if run else _FAILED for run in only.failed]
    expressions += [f"{_TAG}:{tag}" for tag in only.tags]
    expressions += [f"{_ID}:{name}" for name in only.ids]
    expressions += [f"{_key(path)}={value_text(value)}" for path, values in only.where.items() for value in values]
    expressions += [_ANSWERED] * only.answered
    return shlex.join(word for expression in expressions for word in ("--only", expression))


def value_text(value: Any) -> str:
    """A value as conditions write it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _path(key: str) -> str:
    """The path of a key as it is written: a bare one is of the metadata."""
    if key.startswith((_INPUT, _METADATA)):
        return key
    return _METADATA + key.removeprefix(_META)


def _key(path: str) -> str:
    """A path as it is written: without `metadata.` where no word of the language is meant."""
    bare = path.removeprefix(_METADATA)
    if bare == path:
        return path
    is_taken = bare in _WORDS or bare.startswith((_INPUT, _METADATA, _META, *(f"{word}:" for word in _WORDS)))
    return f"{_META}{bare}" if is_taken else bare


def _explain(text: str, word: str) -> str:
    if word in _WORDS and "=" in text:
        value = text.partition("=")[2]
        return f"`--only {text}`: write `{word}:{value}`, or `meta.{text}` for a key of the metadata with this name."
    near = did_you_mean(word, _WORDS)
    return f"`--only {text}` says nothing that is known: {_KNOWN}. {near}"
