"""Imports a `promptfooconfig.yaml`: its tests become a dataset, its assertions, prompts and providers a suite."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from deemster.datasets import Dataset
from deemster.errors import InputError, Issue
from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import is_number
from deemster.formats.yaml_flow import yaml_flow
from deemster.integrations.promptfoo.config_assertions import SuiteMetrics
from deemster.integrations.promptfoo.config_files import ConfigFiles, LeftOut, LeftOutError
from deemster.integrations.promptfoo.config_prompts import SuitePrompt, read_prompts
from deemster.integrations.promptfoo.config_providers import (
    ChatProvider,
    CodeProvider,
    Provider,
    read_graders,
    read_providers,
)
from deemster.integrations.promptfoo.config_tests import ConfigTest, read_tests, with_default_test
from deemster.integrations.run_builder import as_map, as_text
from deemster.integrations.source_file import SourceFile

DATASET, SUITE, TARGETS = "dataset.yml", "suite.yml", "targets.py"
_TARGETS = """\
# The providers of the config that are code, asked as promptfoo asks them.
from pathlib import Path

from deemster.integrations.promptfoo.provider_calls import command_provider, echo_provider, python_provider

HERE = Path(__file__).parent
CONFIG = HERE / {folder!r}

{lines}"""
_FACTORS = ("prompt", "chat")
_CONFIG_KEYS = frozenset(
    {
        "description",
        "prompts",
        "providers",
        "targets",
        "tests",
        "scenarios",
        "defaultTest",
        "assertionTemplates",
        "evaluateOptions",
    }
)
_OPTION_KEYS = frozenset({"repeat", "maxConcurrency"})
_JUDGING = ("g-eval", "llm-as-judge", "context-recall", "answer-relevancy", "claim-faithfulness")
# Who grades in promptfoo, unless a config says it.
_USUAL_GRADER = {"provider": "openai", "model": "gpt-5.5"}
# What is checked where a config asserts nothing that has a metric.
_ANSWERED = ("length-within", {"name": "answered", "min": 1})


class SuiteFiles(NamedTuple):
    """What a config became.

    Attributes:
        dataset: The samples.
        suite: The text of the suite file.
        left_out: What the config has and no file holds, one sentence each.
        prompts: The texts of the prompts, by the paths of their files.
        config_folder: Where the config lies.
        code_targets: The lines of `targets.py` that make the targets of providers that are code.
        remarks: What is to be known of the suite before it runs.
    """

    dataset: Dataset
    suite: str
    left_out: tuple[str, ...]
    prompts: Mapping[str, str]
    config_folder: Path
    code_targets: Sequence[str]
    remarks: tuple[str, ...]

    def write(self, folder: str | Path) -> list[Path]:
        """Write `dataset.yml`, `suite.yml`, the prompts and, where providers are code, `targets.py`; the paths.

        Raises:
            InputError: One of them is there already, or cannot be written.
        """
        texts = {Path(folder, SUITE): self.suite, **{Path(folder, name): text for name, text in self.prompts.items()}}
        if self.code_targets:
            to_config = Path(os.path.relpath(self.config_folder.resolve(), Path(folder).resolve())).as_posix()
            texts[Path(folder, TARGETS)] = _TARGETS.format(folder=to_config, lines="".join(self.code_targets))
        dataset = Path(folder, DATASET)
        for path in (dataset, *texts):
            if path.exists():
                raise InputError(Issue("This file is there already, and is not changed.", str(path)))
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.dataset.save(dataset)
            for path, text in texts.items():
                path.parent.mkdir(exist_ok=True)
                write_aside(path, [text.encode()])
        except OSError as error:
            raise InputError(Issue(f"It cannot be written: {error.strerror or error}.", str(folder))) from None
        return [dataset, *texts]


class _Combination(NamedTuple):
    """A prompt with a provider that is asked it.

    Attributes:
        name: What the variant is called.
        prompt: The prompt.
        provider: The provider.
        target: The whole target.
    """

    name: str
    prompt: SuitePrompt
    provider: Provider
    target: dict[str, Any]


def is_promptfoo_config(source: SourceFile) -> bool:
    """Whether a file is a config of promptfoo."""
    value = None if source.is_folder or source.is_zip else source.value
    if not isinstance(value, dict) or "results" in value or "metrics" in value:
        return False
    asks = "providers" in value or "targets" in value
    return asks + ("prompts" in value) + ("tests" in value or "scenarios" in value) + ("redteam" in value) >= 2


def read_promptfoo_config(source: SourceFile) -> SuiteFiles:
    """The dataset, the suite and the prompts of a config. Files that it names are read if they are below its folder.

    Raises:
        InputError: It has no tests, or something in them cannot be kept.
    """
    files = ConfigFiles(source)
    left_out = LeftOut(source.document)
    config = with_default_test(as_map(source.value), files, left_out)
    left_out.note_keys(config, _CONFIG_KEYS, (), "the config")
    if "redteam" in config and not config.get("tests"):
        why = (
            "The config asks promptfoo to make attacks when it runs (`redteam`), and has no tests of its own. "
            "`deemster attack` runs attacks here."
        )
        raise InputError(Issue(why, source.reading.file))

    tests = read_tests(config, files, left_out)
    if not tests:
        sentences = "; ".join(left_out.sentences())
        raise InputError(Issue(f"No test of the config can be taken in: {sentences}.", source.reading.file))

    prompts = read_prompts(config, files, left_out)
    providers = read_providers(config, files, left_out)
    combinations = _combinations(prompts, providers, left_out)
    if providers and not combinations:
        left_out.note("how the providers are asked, since no prompt is", ("providers",))
    metrics = SuiteMetrics(config, files, left_out)
    variables = {name for pair in combinations for name in pair.prompt.variables | pair.provider.variables}
    samples = _samples(tests, metrics, variables)
    entries = metrics.entries()

    name = as_text(config.get("description")) or source.path.stem
    sections: dict[str, Any] = {"schema_version": "deemster.suite.v1", "name": name, "dataset": DATASET}
    sections |= _models(config, providers, [metric for metric, _ in entries], files, left_out)
    if prompts:
        sections["prompts"] = {prompt.name: prompt.path for prompt in prompts}
    if combinations:
        sections |= _target(combinations)
    sections |= _options(config, left_out)
    sections["metrics"] = [{metric: options} for metric, options in entries or [_ANSWERED]]
    return SuiteFiles(
        dataset=Dataset(samples, name=name),
        suite=_yaml(sections),
        left_out=left_out.sentences(),
        prompts={prompt.path: prompt.text for prompt in prompts},
        config_folder=source.path.parent,
        code_targets=[
            combination.provider.source(combination.prompt)
            for combination in combinations
            if isinstance(combination.provider, CodeProvider)
        ],
        remarks=tuple(_remarks(sections, {metric for metric, _ in entries})),
    )


def _remarks(sections: Mapping[str, Any], metrics: set[str]) -> Iterator[str]:
    """What is to be known of the suite before it runs."""
    models = sections.get("models", {})
    if models.get("judge") == _USUAL_GRADER:
        yield "`judge` is the usual grader of promptfoo, a model of OpenAI: name another in `models` if you have no key"
    if not metrics:
        yield "no assertion has a metric here: `answered` checks that there is an output at all"
    if "cost-below" in metrics:
        yield "`cost-below` is unscored until each model in `models` has a `price`"
    if "cosine-embedding" in metrics and "embedding" not in models:
        yield "`similar` is measured by the embedded vectors: add `embedding` to `models` for those of a provider"
    if "target" not in sections and "variants" not in sections:
        yield "no prompt is asked of a model here: add a `target`, or run the suite with `--outputs FILE`"


def _samples(tests: Sequence[ConfigTest], metrics: SuiteMetrics, variables: set[str]) -> list[dict[str, Any]]:
    """A sample for each test; a variable that a prompt names and a test lacks is empty, as it is in promptfoo."""
    samples: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for test in tests:
        named = test.description or f"test-{len(samples) + 1}"
        counts[named] = counts.get(named, 0) + 1
        sample: dict[str, Any] = {
            "id": named if counts[named] == 1 else f"{named}-{counts[named]}",
            "input": {**test.variables, **dict.fromkeys(sorted(variables - set(test.variables)), "")},
            "expected_output": None,
            "metadata": test.metadata,
        }
        metrics.add_sample(sample)
        for assertion, path in test.assertions:
            metrics.add(as_map(assertion), path)
        samples.append(sample)
    return samples


def _combinations(
    prompts: Sequence[SuitePrompt], providers: Sequence[Provider], left_out: LeftOut
) -> list[_Combination]:
    """Each provider with each prompt that it is asked."""
    combinations = []
    for provider in providers:
        for prompt in prompts:
            if provider.prompts is not None and prompt.labels.isdisjoint(map(str, provider.prompts)):
                continue
            name = " / ".join(
                [prompt.name] * (len(prompts) > 1) + [provider.name] * (len(providers) > 1 or len(prompts) == 1)
            )
            try:
                combinations.append(_Combination(name, prompt, provider, _whole_target(prompt, provider)))
            except LeftOutError as error:
                left_out.note(f"`{name}`: {error}", ("prompts",))
    return combinations


def _whole_target(prompt: SuitePrompt, provider: Provider) -> dict[str, Any]:
    if isinstance(provider, ChatProvider):
        return {"chat": provider.name, "prompt": prompt.name, **provider.settings}
    if isinstance(provider, CodeProvider):
        return {"python": f"targets:{provider.function(prompt)}"}
    return provider.target(prompt)


def _target(combinations: Sequence[_Combination]) -> dict[str, Any]:
    """The sections `target` and `variants`: a grid where prompts and models are all that differs, else by name."""
    targets = [combination.target for combination in combinations]
    shared = {key: value for key, value in targets[0].items() if all(target.get(key) == value for target in targets)}
    parts = [{key: value for key, value in target.items() if key not in shared} for target in targets]

    levels = {key: list(dict.fromkeys(part.get(key) for part in parts)) for key in _FACTORS if key in parts[0]}
    is_grid = all(part.keys() == levels.keys() for part in parts)
    if is_grid and prod(map(len, levels.values())) == len(parts):
        return {"target": {**shared, **parts[0]}, **({"variants": levels} if levels else {})}

    variants = {combination.name: part for combination, part in zip(combinations, parts, strict=True)}
    return {**({"target": shared} if shared else {}), "variants": variants}


def _models(
    config: Mapping[str, Any],
    providers: Sequence[Provider],
    metrics: Sequence[str],
    files: ConfigFiles,
    left_out: LeftOut,
) -> dict[str, Any]:
    """The section `models`: who is asked, and who judges."""
    models = {provider.name: provider.model for provider in providers if isinstance(provider, ChatProvider)}
    grader = as_map(as_map(config.get("defaultTest")).get("options")).get("provider")
    graders = read_graders(grader, files, left_out, ("defaultTest", "options", "provider"))
    if any(metric in _JUDGING for metric in metrics):
        models["judge"] = _USUAL_GRADER
    models |= graders
    return {"models": models} if models else {}


def _options(config: Mapping[str, Any], left_out: LeftOut) -> dict[str, Any]:
    """What `evaluateOptions` says of a run."""
    options = as_map(config.get("evaluateOptions"))
    left_out.note_keys(options, _OPTION_KEYS, ("evaluateOptions",), "the options of an evaluation")
    sections: dict[str, Any] = {}
    if is_number(options.get("repeat")) and options["repeat"] > 1:
        sections["repetitions"] = int(options["repeat"])
    if is_number(options.get("maxConcurrency")) and options["maxConcurrency"] >= 1:
        sections["limits"] = {"concurrency": int(options["maxConcurrency"])}
    return sections


def _yaml(sections: Mapping[str, Any]) -> str:
    """The suite, with one line for each entry of a section."""
    lines = ["# Made from a config of promptfoo."]
    for key, value in sections.items():
        if isinstance(value, list):
            lines += [
                f"{key}:",
                *(f"  - {name}: {yaml_flow(options)}" for entry in value for name, options in entry.items()),
            ]
        elif isinstance(value, dict):
            lines += [f"{key}:", *(f"  {_key(name)}: {yaml_flow(entry)}" for name, entry in value.items())]
        else:
            lines.append(f"{key}: {value if key in ('schema_version', 'dataset') else yaml_flow(value)}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").replace(".", "").isalnum() else yaml_flow(name)
