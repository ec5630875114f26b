"""The pages of docs/metrics: one for each family of the catalog, with worked examples that are computed.

`pytest tests/test_metric_pages.py --refresh-golden -n 0` writes them; without the flag the test compares them.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

import deemster as dm
from deemster.cli.metrics import describe_needs
from deemster.judges.metric_catalog import CatalogEntry, CatalogOption, entries, resolve
from deemster.judges.metric_groups import GROUPS
from deemster.models.embedded_embedding import EmbeddedEmbedding

READY_MADE = "judge-presets"
# The title of each page, and what stands above its metrics.
PAGES = {
    "lexical": (
        "Text, JSON and numbers",
        "These metrics compare texts, JSON and numbers by rules. They ask no model.",
    ),
    "retrieval": (
        "Retrieval",
        (
            "These metrics look at what the application retrieved (`retrieved` of its output) and at the ids "
            "that are relevant (`metadata.relevant` of the sample). The short name takes a depth: `recall@5`."
        ),
    ),
    "ordinal-citation": (
        "Ordered labels and citations",
        "These metrics read expectations from the metadata of a sample.",
    ),
    "limits": (
        "Latency and cost",
        "These metrics read the `usage` that the application reports with its output.",
    ),
    "trajectory": (
        "Agents",
        (
            "These metrics look at the trajectory of an output: which tools the agent called, in which order, "
            "with which arguments and approvals. What is expected stands in `metadata.trajectory` of the "
            "sample, or in the options. A sample without an expectation is unscored."
        ),
    ),
    "safety": (
        "Safety",
        (
            "This metric tells without a judge whether an attack succeeded. What the attack is after stands in "
            "`metadata.adversarial` of the sample. See [Safety](../guide/safety.md)."
        ),
    ),
    "semantic": (
        "Similarity by embeddings",
        (
            "These metrics compare the vectors of an embedding model; one is part of the installation. The "
            "examples show their limit: the contradiction is more similar than the paraphrase. Similarity "
            "tells that two texts have the same subject, not that they say the same."
        ),
    ),
    "judge": (
        "Judges",
        (
            "Judges ask [a model](../guide/models.md) that you name. In the examples the replies of the model "
            "were written by hand; the scores are computed from them. `deemster metrics NAME` prints the prompt. "
            "[Ready-made qualities](judge-presets.md) have their own page, and [the guide](../guide/judges.md) "
            "helps to choose."
        ),
    ),
    READY_MADE: (
        "Ready-made qualities",
        (
            "Each of these is [`g-eval`](judge.md#g-eval) with steps and a scale that are written already. "
            "They take its options, among them `threshold`, `steps` and `rubric`. The judge goes through the "
            "steps and chooses a number of the scale; the score is (number - lowest)/(highest - lowest). "
            "`deemster metrics NAME` prints the steps and the prompt."
        ),
    ),
}
COLUMNS = {
    "options": "options",
    "question": "question",
    "expected": "expected",
    "metadata": "metadata",
    "output": "output",
    "retrieved": "retrieved",
    "trajectory": "trajectory",
    "usage": "usage",
    "replies": "replies of the model",
}
USUAL_THRESHOLD = 0.5
COMMON_OPTIONS = frozenset({"name", "threshold", "where"})


def pages() -> dict[str, str]:
    """Every page by name, without the index."""
    return {name: "\n".join(_page_lines(name)) for name in PAGES}


def index_tables() -> str:
    """The tables of the index: every metric with its page, and the groups."""
    lines: list[str] = []
    for name, (title, _) in PAGES.items():
        lines += [f"| [{title}]({name}.md) | score |", "|---|---|"]
        for entry in _entries_of(name):
            short = f" (`{entry.short}`)" if entry.short else ""
            lines.append(f"| [`{entry.name}`]({name}.md#{entry.name}){short} | {_in_cell(entry.summary)} |")
        lines.append("")
    lines += ["## Groups", "", "`group: NAME` in a suite brings the metrics of the group and its aggregator.", ""]
    lines += ["| group | metrics | for |", "|---|---|---|"]
    for group in GROUPS.values():
        names = (entry if isinstance(entry, str) else next(iter(entry)) for entry in group.metrics)
        lines.append(f"| `{group.name}` | {', '.join(f'`{one}`' for one in names)} | {_in_cell(group.about)} |")
    return "\n".join(lines)


def _entries_of(page: str) -> Iterator[CatalogEntry]:
    for entry in entries():
        if page == (READY_MADE if _default(entry, "preset") else entry.family):
            yield entry


def _page_lines(page: str) -> Iterator[str]:
    title, above = PAGES[page]
    yield from (f"# {title}", "", above, "")
    yield "Every metric also takes `name`, `threshold` and [`where`](../guide/metrics.md#where-a-metric-applies)."
    if page != READY_MADE:
        yield f"The threshold is {USUAL_THRESHOLD} where nothing else is said."
    for entry in _entries_of(page):
        yield from ("", f"## {entry.name}", "")
        yield from _ready_made(entry) if page == READY_MADE else _section(entry)
    yield ""


def _section(entry: CatalogEntry) -> Iterator[str]:
    paragraphs, meanings = _split_doc(entry.doc)
    for paragraph in (*paragraphs, *_when(entry)):
        yield from (paragraph, "")
    yield from _example_table(entry)
    if options := [option for option in entry.options if option.name not in COMMON_OPTIONS]:
        yield from ("", *_option_lines(options, meanings))


def _when(entry: CatalogEntry) -> Iterator[str]:
    """When it passes, where it applies, what it needs: as far as its page does not say it of all."""
    if (threshold := _default(entry, "threshold")) != USUAL_THRESHOLD:
        yield f"It passes with a score of at least {threshold}."
    if entry.needs:
        yield f"`where: auto`: {describe_needs(entry.needs)}."
    if entry.extra:
        yield f"It needs the extra `{entry.extra}`."


def _option_lines(options: list[CatalogOption], meanings: dict[str, str]) -> Iterator[str]:
    """A table where the docstring explains options one by one, else a sentence: the prose explains them."""
    defaults = {option.name: json.dumps(msgspec.to_builtins(option.default)) for option in options}
    if not meanings:
        yield f"Options and their defaults: {', '.join(f'`{name}: {value}`' for name, value in defaults.items())}."
        return
    yield from ("| option | default | meaning |", "|---|---|---|")
    for name, default in defaults.items():
        meaning = re.sub(r" Default: (none|false)\.$", "", meanings.get(name, ""))
        yield f"| `{name}` | `{default}` | {_in_cell(meaning)} |"


def _ready_made(entry: CatalogEntry) -> Iterator[str]:
    side = "at least" if _default(entry, "higher_is_better") else "at most"
    fields = ", ".join(f"`{field}`" for field in _default(entry, "fields"))
    yield from (entry.summary, "")
    yield f"The judge sees {fields}. It passes with a score of {side} {_default(entry, 'threshold')}."
    yield from ("", "| judge says | meaning | score |", "|---:|---|---:|")
    for band in _default(entry, "rubric"):
        ends = dict.fromkeys(band.range)
        scores = [f"{_score_of_reply(entry, value):.4g}" for value in ends]
        yield f"| {' to '.join(map(str, ends))} | {_in_cell(band.outcome)} | {' to '.join(scores)} |"


def _score_of_reply(entry: CatalogEntry, value: int) -> float:
    reply = json.dumps({"reason": "Because.", "score": value})
    given = {"question": "?", "expected": "x", "output": "x", "metadata": {"context": "x"}, "replies": [reply]}
    return _mark(entry.name, given).score


def _example_table(entry: CatalogEntry) -> Iterator[str]:
    examples = yaml.safe_load(entry.examples)
    columns = [key for key in COLUMNS if any(key in given for given in examples)]
    yield f"| {' | '.join([*(COLUMNS[key] for key in columns), 'score'])} |"
    yield f"|{'---|' * len(columns)}---:|"
    for given in examples:
        mark = _mark(entry.name, given)
        cells = [_in_code(*_texts(key, given[key])) if key in given else "" for key in columns]
        score = f"unscored: {mark.message}" if isinstance(mark, dm.Unscored) else f"**{mark.score:.4f}**"
        yield f"| {' | '.join([*cells, _in_cell(score)])} |"


def _mark(name: str, given: dict[str, Any]) -> Any:
    """The mark of one example. The script of a judge is played by hand, with the given replies."""
    sample = dm.Sample(
        "example", {"question": given.get("question", "")}, given.get("expected"), given.get("metadata", {})
    )
    rest = {key: given[key] for key in ("retrieved", "trajectory", "usage") if key in given}
    output = dm.Output(given.get("output", ""), **rest)
    metric: Any = resolve({name: given.get("options")})
    if not hasattr(metric, "script"):
        return metric.score(sample, output)
    replies = iter(given.get("replies", ()))
    script = metric.script(sample, output)
    try:
        requests = next(script)
        while True:
            requests = script.send([_reply(request, replies) for request in requests])
    except StopIteration as stop:
        return stop.value


def _reply(request: Any, replies: Iterator[str]) -> Any:
    if isinstance(request, dm.records.Embed):
        return _embedding_model().embed_many(request.texts)
    return dm.records.Answer(text=next(replies), model="written by hand")


@functools.cache
def _embedding_model() -> EmbeddedEmbedding:
    return EmbeddedEmbedding()


def _default(entry: CatalogEntry, name: str) -> Any:
    return next((option.default for option in entry.options if option.name == name), None)


def _split_doc(doc: str) -> tuple[list[str], dict[str, str]]:
    """The paragraphs of a docstring without its typed example, and the meaning of each option it explains."""
    meanings: dict[str, str] = {}
    paragraphs: list[str] = []
    for block in re.sub(r"^Example: .*?(?=\n\n|\Z)", "", doc, flags=re.MULTILINE | re.DOTALL).split("\n\n"):
        if block.startswith("Options:\n"):
            for name, meaning in re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", block, re.MULTILINE | re.DOTALL):
                meanings[name] = " ".join(meaning.split())
        else:
            parts = re.split(r"(?<=\.)\n(?=Options: |Details: |`)", block.strip())
            paragraphs += [" ".join(part.split()) for part in parts if part]
    return paragraphs, meanings


def _texts(column: str, value: Any) -> list[str]:
    return [_as_text(part) for part in value] if column == "replies" else [_as_text(value)]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def _in_code(*texts: str) -> str:
    return "<br>".join(f"`{_in_cell(text)}`" for text in texts)


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")
