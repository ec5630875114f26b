"""Imports every config of promptfoo below a folder, and looks for values that make no difference without a word.

Each value of a config is changed, one at a time. Where neither the files that it becomes change nor the list of what is
not taken in, and no sentence of that list is about the value, it was dropped in silence.

Usage: python bench/promptfoo_configs.py FOLDER [--values] [--only PART]

FOLDER is a copy of the examples of promptfoo; none of its files is part of this repository. --values prints each value
that was dropped in silence.
"""

from __future__ import annotations

import argparse
import copy
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from deemster.errors import InputError
from deemster.integrations.import_promptfoo_config import SuiteFiles, is_promptfoo_config, read_promptfoo_config
from deemster.integrations.import_run import read_runs
from deemster.integrations.source_file import SourceFile

# What of a config is read; everything else is listed as a whole.
READ = (
    *("description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "assertionTemplates"),
    "evaluateOptions",
)
# A folder that holds more than this is not copied, and its config is only imported.
LARGEST = 20 * 2**20
GOAL = "no crash, nothing dropped in silence"


class Imported(NamedTuple):
    """What became of a config: the files and what is listed, or why it was refused, or how it crashed."""

    outcome: str
    reason: str = ""
    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class PlainDumper(yaml.SafeDumper):
    """Writes every value where it stands, without references to others."""

    def ignore_aliases(self, _data: Any) -> bool:
        """All of them."""
        return True


# Quoted, a text stays on one line, so that the lines that are named stay the same.
PlainDumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def imported(path: Path) -> Imported:
    """What becomes of a file."""
    try:
        source = SourceFile(path)
        if not is_promptfoo_config(source):
            read_runs(path)
            return Imported("imported")
        return described(read_promptfoo_config(source))
    except InputError as error:
        return Imported("refused", error.issues[0].message)
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return Imported("crashed", f"{type(error).__name__}: {error}")


def described(files: SuiteFiles) -> Imported:
    """The files and the list as text."""
    samples = "\n".join(map(repr, files.dataset))
    texts = [samples, files.suite, *files.prompts.values(), *files.code_targets, *files.remarks]
    return Imported("imported", "", tuple(texts), files.left_out)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values that are neither a map nor a list."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in pairs:
            yield from leaves(part, (*path, key))
    elif path:
        yield path


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{'' if value is None else value}Z"


def with_change(config: Any, path: tuple[Any, ...]) -> Any:
    """The config with another value at a path."""
    copied = copy.deepcopy(config)
    owner = copied
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = changed(owner[path[-1]])
    return copied


def is_overridden(config: Any, path: tuple[Any, ...]) -> bool:
    """Whether it is a default that every test has a value of its own for."""
    owner, *keys = path
    tests = config["tests"] if isinstance(config.get("tests"), list) else []
    maps = [test.get(keys[0]) if isinstance(test, dict) else None for test in tests] if keys else []
    return (
        owner == "defaultTest" and len(keys) == 2 and all(isinstance(part, dict) and keys[1] in part for part in maps)
    )


def is_listed(source: SourceFile, path: tuple[Any, ...], left_out: tuple[str, ...]) -> bool:
    """Whether a sentence of the list is about a key on the path, or about something around it."""
    keys = [key for key in path if isinstance(key, str)]
    lines = {source.document.line(path[:length]) for length in range(1, len(path) + 1)}
    for sentence in left_out:
        if any(f"`{key}` of " in sentence for key in keys):
            return True
        is_about_key = re.match(r"`[^`]*` of ", sentence) is not None
        numbers = re.search(r", lines? ([\d, ]+)( and [\d,]+ more)?$", sentence)
        if not is_about_key and numbers and (numbers[2] or not lines.isdisjoint(map(int, numbers[1].split(", ")))):
            return True
    return False


def silent_values(path: Path, folder: Path) -> list[tuple[Any, ...]]:
    """The values of a config that may be anything, and nobody is told; FOLDER is for copies of its own."""
    config = SourceFile(path).value
    copied = folder / "config"
    shutil.copytree(path.parent, copied)
    place = copied / "promptfooconfig.changed.yaml"

    def imported_as(value: Any) -> Imported:
        place.write_text(yaml.dump(value, Dumper=PlainDumper, width=1 << 30, sort_keys=False), encoding="utf-8")
        return imported(place)

    before = imported_as(config)
    assert before.outcome == "imported", before.reason
    source = SourceFile(place)
    _ = source.document
    read = {key: config[key] for key in READ if key in config}
    silent = [
        leaf
        for leaf in leaves(read)
        if not is_listed(source, leaf, before.left_out)
        and not is_overridden(config, leaf)
        and imported_as(with_change(config, leaf)) == before
    ]
    shutil.rmtree(copied)
    return silent


def size(folder: Path) -> int:
    """How many bytes a folder holds."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--only", default="")
    flags = parser.parse_args()
    configs = [path for path in sorted(flags.folder.rglob("promptfooconfig*.yaml")) if flags.only in str(path)]

    outcomes = {path: imported(path) for path in configs}
    with tempfile.TemporaryDirectory() as folder:
        silent = {
            path: values
            for path, found in outcomes.items()
            if found.outcome == "imported"
            and size(path.parent) < LARGEST
            and (values := silent_values(path, Path(folder)))
        }

    counts = Counter(found.outcome for found in outcomes.values())
    print(f"{len(configs)} configs: {counts['imported']} imported, {counts['refused']} refused with a reason,")
    print(f"{counts['crashed']} crashed, {len(silent)} with a value dropped in silence (goal: {GOAL})")
    for reason, count in Counter(found.reason for found in outcomes.values() if found.reason).most_common():
        print(f"{count:5}  {reason}")
    for path, values in silent.items() if flags.values else ():
        print(path, *(".".join(map(str, value)) for value in values), sep="\n    ")


if __name__ == "__main__":
    main()
