"""Finds the columns of a table of golden samples: by their names, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from deemster.datasets._spreadsheet_columns import METADATA, Columns, column_index, fold_name
from deemster.errors import Issue, did_you_mean, list_names, nearest
from deemster.formats.document import Reading

NAMES = ("id", "input.<field>", "input:json", "expected_output", "expected_output:json", "tags", "metadata.<key>")
WHOLE = ("input", METADATA)
# Metadata that is a list: its cells are split at a vertical bar.
LISTS = frozenset({"tags", "relevant", "contexts", "citations"})
# Words in the names of columns by what they mostly hold; the first that fits a column counts.
_USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id", "nr", "no", "number", "nummer", "num", "numero", "key"),
    "expected_output": (
        *("expected", "answer", "reference", "ideal", "gold", "truth"),
        *("erwartet", "erwartete", "antwort", "soll", "attendue", "attendu", "reponse", "réponse", "respuesta"),
        *("esperada", "risposta", "attesa", "resposta", "verwacht", "antwoord"),
    ),
    "input.question": (
        *("question", "query", "prompt", "input", "frage", "eingabe", "pregunta", "domanda", "pergunta", "vraag"),
        *("entrée", "entrada"),
    ),
    "metadata.tags": (
        *("tag", "tags", "category", "topic", "group", "kategorie", "thema", "gruppe", "catégorie", "categorie"),
        *("categoría", "categoria", "tema"),
    ),
}
_ORDER: tuple[str, ...] = ("id", "input.question", "expected_output", "metadata.tags")
_WORDS = re.compile(r"\w+")


class SampleColumn(NamedTuple):
    """What a column holds: a part of a sample, a key in it, and whether cells are JSON."""

    part: str
    key: str | None = None
    is_json: bool = False

    @property
    def is_list(self) -> bool:
        """Whether cells of text are lists."""
        return self.part == METADATA and self.key in LISTS and not self.is_json


def find_columns(
    names: Sequence[str], reading: Reading, *, has_maps: bool, given: Columns | None = None, numbered: bool = False
) -> tuple[list[SampleColumn], list[Issue]]:
    """What the columns hold, and what is wrong with them.

    Args:
        names: The header.
        reading: How the file is called.
        has_maps: Whether cells may hold maps.
        given: Which column holds what, where its name does not say it; other columns that nothing is known of are then
            metadata.
        numbered: Whether a sample without an id is called by its line.
    """
    where = f"{reading.file}:1"
    called, issues = _rename(names, given or {}, where, has_maps=has_maps)
    if issues:
        return [], issues
    columns = [_column(name.strip(), has_maps=has_maps) for name in called]
    unknown = [name for name, column in zip(called, columns, strict=True) if column is None]

    misspelt = [name for name in unknown if nearest(name, NAMES)]
    if given is None and unknown:
        guessed = _guess(names, columns)
        return [], [Issue(_describe_unknown(unknown, misspelt, guessed, reading.file), where)]
    issues = [Issue(f"`{name}` is no column of a dataset. {did_you_mean(name, NAMES)}", where) for name in misspelt]
    columns = [
        SampleColumn(METADATA, fold_name(name)) if column is None else column
        for name, column in zip(called, columns, strict=True)
    ]
    settled = [column for column in columns if column is not None]
    issues += _contradictions(settled, called, where)
    issues += _missing(settled, where, numbered=numbered)
    return settled, issues


def _rename(names: Sequence[str], given: Columns, where: str, *, has_maps: bool) -> tuple[list[str], list[Issue]]:
    """The header with the names that the user gives to columns, and what is wrong with these."""
    called = list(names)
    issues: list[Issue] = []
    for role, column_names in given.items():
        if role != METADATA and _column(role, has_maps=has_maps) is None:
            field = role.rpartition(".")[2]
            known = ("id", f"input.{field}", "expected_output", "tags", f"{METADATA}.{field}")
            message = f"`columns` names `{role}`, which no column of a dataset holds. {did_you_mean(role, known)}"
            issues.append(Issue(message, where))
            continue
        for name in [column_names] if isinstance(column_names, str) else column_names:
            index = column_index(name, [*map(str.strip, names)])
            if index is None:
                issues.append(Issue(f"There is no column `{name}`. {did_you_mean(name, names)}", where))
            else:
                called[index] = f"{METADATA}.{fold_name(name)}" if role == METADATA else role
    return called, issues


def _contradictions(columns: Sequence[SampleColumn], called: Sequence[str], where: str) -> Iterator[Issue]:
    """Columns that hold the same, or a part beside the whole."""
    taken: dict[tuple[str, str | None], str] = {}
    for column, name in zip(columns, called, strict=True):
        other = taken.get((column.part, column.key))
        if other is not None:
            also = "" if other == name else f", also as `{other}`"
            yield Issue(f"The column `{name}` is given twice{also}.", where)
        taken[column.part, column.key] = name
    for part in WHOLE:
        fields = [column for column in columns if column.part == part and column.key not in (None, "tags")]
        if fields and (part, None) in taken:
            yield Issue(f"`{taken[part, None]}` stands beside `{part}.` columns; use one of the two.", where)


def _missing(columns: Sequence[SampleColumn], where: str, *, numbered: bool) -> Iterator[Issue]:
    """Columns that there must be."""
    parts = {column.part for column in columns}
    if "id" not in parts and not numbered:
        yield Issue("The column `id` is missing.", where)
    if "input" not in parts:
        yield Issue("The input is missing: give columns `input.<field>` or `input:json`.", where)
    if "expected_output" not in parts:
        yield Issue("The column `expected_output` is missing; leave its cells blank where there is none.", where)


def _column(name: str, *, has_maps: bool) -> SampleColumn | None:
    """What a column holds by its name."""
    text, _, suffix = name.rpartition(":") if name.endswith(":json") else (name, "", "")
    is_json = suffix == "json"
    part, dot, key = text.partition(".")
    if text == "id" and not is_json:
        return SampleColumn("id")
    if text == "expected_output":
        return SampleColumn("expected_output", None, is_json)
    if text == "tags":
        return SampleColumn(METADATA, "tags", is_json)
    if part in WHOLE and dot and key:
        return SampleColumn(part, key, is_json)
    if text in WHOLE and (is_json or has_maps):
        return SampleColumn(text, None, is_json)
    return None


def _guess(names: Sequence[str], columns: Sequence[SampleColumn | None]) -> dict[str, str]:
    """The column of each part of a sample, as far as names tell; what is left over is metadata."""
    known = {column.part for column in columns if column is not None}
    unknown = [name.strip() for name, column in zip(names, columns, strict=True) if column is None and name.strip()]
    guesses: dict[str, str] = {}
    for role, words in _USUAL.items():
        if role.partition(".")[0] not in known:
            fitting = (name for name in unknown if not set(words).isdisjoint(_WORDS.findall(name.casefold())))
            column = next((name for name in fitting if name not in guesses.values()), None)
            if column is not None:
                guesses[role] = column
    for role in ("input.question", "expected_output"):
        left = [name for name in unknown if name not in guesses.values()]
        if role not in guesses and role.partition(".")[0] not in known and left:
            guesses[role] = left[0]
    in_order = {role: guesses[role] for role in _ORDER if role in guesses}
    left = [name for name in unknown if name not in guesses.values()]
    return {**in_order, **{f"{METADATA}.{'_'.join(_WORDS.findall(name.casefold()))}": name for name in left}}


def _describe_unknown(unknown: Sequence[str], misspelt: Sequence[str], guesses: Mapping[str, str], file: str) -> str:
    """One sentence about all columns that are unknown, with what to write in the suite."""
    are = "are no columns" if len(unknown) > 1 else "is no column"
    if len(misspelt) == len(unknown) == 1:
        return f"`{unknown[0]}` is no column of a dataset. {did_you_mean(unknown[0], NAMES)}"
    mapping = ", ".join(f"{role}: {_in_yaml(name)}" for role, name in guesses.items())
    return (
        f"{list_names(unknown, limit=5)} {are} of a dataset. They are called `id`, `input.<field>`, "
        "`expected_output`, `tags` and `metadata.<key>`; a suite says which is which of others: "
        f"`dataset: {{ file: {_in_yaml(Path(file).name)}, columns: {{ {mapping} }} }}`"
    )


def _in_yaml(text: str) -> str:
    """A text as a value within braces."""
    is_plain = re.fullmatch(r"[^\W\d_][\w.-]*", text) is not None
    return text if is_plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
