"""Imports every config of promptfoo below a folder, and runs what it becomes against chat servers on loopback.

Usage: python bench/promptfoo_examples.py FOLDER [--reasons] [--only PART]

FOLDER is a copy of the examples of promptfoo; none of its files is part of this repository. --reasons prints what stops
each config. Every model of a suite is asked from a server of `deemster.testing` in place of its provider.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from click.testing import CliRunner

from deemster.cli import app
from deemster.errors import InputError
from deemster.integrations.import_promptfoo_config import is_promptfoo_config, read_promptfoo_config
from deemster.integrations.source_file import SourceFile
from deemster.models.providers import PROVIDERS
from deemster.testing import ModelServer

GOAL = 150
FEW_SAMPLES = 20
KEY = "not-a-key"
# What of promptfoo decides whether a config runs, by a sentence of what is not taken in; the first that fits counts.
REASONS = (
    (
        "agents, images, sound and other providers without a counterpart",
        r"a provider: .*(no counterpart|no chat model)",
    ),
    ("providers that are code of another language", r"a provider: .*code"),
    ("signed requests, and replies that code reads", r"a provider: .*(signed|transformResponse|url)"),
    ("prompts that are code", r"a prompt: .*code"),
    ("prompts with images or other parts that are no text", r"a prompt: .*(role with a text|no list of messages)"),
    ("prompts that promptfoo fills in its own way", r"a prompt: "),
)


class Outcome(NamedTuple):
    """What became of a config.

    Attributes:
        kind: `refused`, `no target`, `stopped`, `incomplete` or `runs`.
        reason: What stopped it.
        is_whole: Whether everything of it was taken in.
    """

    kind: str
    reason: str = ""
    is_whole: bool = False


def outcome(config: Path, folder: Path, urls: Mapping[str, str]) -> Outcome:
    """Import a config, and run the suite."""
    try:
        source = SourceFile(config)
        if not is_promptfoo_config(source):
            return Outcome("refused", "no config with prompts, providers or tests")
        files = read_promptfoo_config(source)
    except InputError as error:
        return Outcome("refused", refusal(error.issues[0].message))

    files.write(folder)
    suite = yaml.safe_load(files.suite)
    if "target" not in suite and "variants" not in suite:
        return Outcome("no target", missing_target(files.left_out))
    if "http" in json.dumps([suite.get("target"), suite.get("variants")]):
        return Outcome("no target", "endpoints of one's own, which are not there")

    on_loopback(suite, urls)
    (folder / "suite.yml").write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    result = CliRunner().invoke(
        app, ["run", str(folder / "suite.yml"), "--limit", str(FEW_SAMPLES), "--store", str(folder / "runs.db")]
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Outcome("stopped", f"crash: {type(result.exception).__name__}: {result.exception}")
    kinds = {0: "runs", 1: "runs", 3: "incomplete"}
    kind = kinds.get(result.exit_code, "stopped")
    return Outcome(kind, first_sentence(result.output), is_whole=not files.left_out)


def refusal(message: str) -> str:
    """Why a config is refused, without what differs between configs."""
    if "redteam" in message:
        return "attacks that promptfoo makes when it runs"
    if "on the network" in message:
        return "tests on the network"
    if "is code" in message:
        return "tests that are code"
    return message


def missing_target(left_out: tuple[str, ...]) -> str:
    """Why nothing is asked in a suite."""
    for reason, pattern in REASONS:
        if any(re.match(pattern, sentence) for sentence in left_out):
            return reason
    return "no provider"


def on_loopback(suite: dict[str, Any], urls: Mapping[str, str]) -> None:
    """Have every model of a suite answered by a server on loopback that speaks its protocol."""
    for entry in suite.get("models", {}).values():
        entry["base_url"] = urls["anthropic" if entry.get("provider") == "anthropic" else "openai"]
        if "api_key_env" in entry:
            os.environ[entry["api_key_env"]] = KEY


def first_sentence(text: str) -> str:
    """The first line that says what is wrong."""
    if "cost-below: The output has no usage with a `cost_usd`" in text:
        return "`cost` without the price of the model"
    if "The provider `" in text and "ModuleNotFoundError" in text:
        return "packages that a provider's code needs are not installed"
    lines = [line for line in text.splitlines() if line.startswith(("error", "incomplete"))]
    return re.sub(r"\S*/\S*:\d+: |`[^`]*`|\d+", "..", lines[0] if lines else "")[:150]


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """Chat servers by the protocol that they speak; keys are set that no server looks at."""
    for provider in PROVIDERS.values():
        if provider.api_key_env is not None:
            os.environ[provider.api_key_env] = KEY
    with ModelServer() as plain, ModelServer(like="anthropic") as anthropic:
        yield {"openai": plain.url, "anthropic": anthropic.url}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--only", default="")
    flags = parser.parse_args()
    configs = [path for path in sorted(flags.folder.rglob("promptfooconfig*.yaml")) if flags.only in str(path)]

    outcomes: dict[Path, Outcome] = {}
    with servers() as urls:
        for config in configs:
            folder = Path(tempfile.mkdtemp())
            outcomes[config] = outcome(config, folder / "suite", urls)
            shutil.rmtree(folder)

    counts = Counter(found.kind for found in outcomes.values())
    imported = len(configs) - counts["refused"]
    whole = sum(found.kind == "runs" and found.is_whole for found in outcomes.values())
    print(f"{len(configs)} configs: {imported} imported, {counts['runs']} run to the end (goal: at least {GOAL}),")
    print(f"{whole} of these with everything that the config says")
    for (kind, reason), count in Counter(
        (found.kind, found.reason) for found in outcomes.values() if found.kind != "runs"
    ).most_common():
        print(f"{count:5}  {kind}: {reason}")
    for config, found in outcomes.items() if flags.reasons else ():
        print(config.relative_to(flags.folder), found.kind, found.reason)


if __name__ == "__main__":
    main()
