"""`deemster metrics`."""

from __future__ import annotations

import json
from typing import Any

import click
import msgspec

from deemster.formats.canonical_json import json_text
from deemster.judges.metric_groups import GROUPS, MetricGroup
from deemster.runs.metric_catalog import CatalogEntry, describe, entries

_LONGEST = 60


@click.command("metrics", short_help="Show the catalog: what each metric reads, returns and can be told.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the catalog as JSON.")
def command(*, name: str | None, as_json: bool) -> None:
    """Show the catalog: what each metric reads, returns and can be told.

    NAME is an alias or a short name, such as `rouge-l` or `ndcg`, or a ready-made group, such as `generation`. A star
    marks the core metrics.
    """
    if name is not None and name in GROUPS:
        click.echo(json.dumps(msgspec.to_builtins(GROUPS[name]), indent=2) if as_json else _grouped(GROUPS[name]))
        return
    chosen = entries() if name is None else (describe(name),)
    if as_json:
        click.echo(json.dumps([_plain(entry) for entry in chosen], indent=2, ensure_ascii=False, default=str))
    elif name is None:
        click.echo(_listed(chosen))
    else:
        click.echo(_described(chosen[0]))


def _listed(chosen: tuple[CatalogEntry, ...]) -> str:
    width = max(len(entry.name) for entry in chosen) + 1
    lines: list[str] = []
    family = ""
    for entry in chosen:
        if entry.family != family:
            family = entry.family
            lines += ["", family] if lines else [family]
        star = "*" if entry.core else " "
        short = f" [{entry.short}]" if entry.short else ""
        lines.append(f"  {star} {entry.name.ljust(width)} {entry.summary}{short}")
    lines += ["", "groups"]
    lines += [f"    {group.name.ljust(width)} {group.about}" for group in GROUPS.values()]
    return "\n".join(lines)


def _grouped(group: MetricGroup) -> str:
    lines = [f"{group.name}, a group: `group: {group.name}` in a suite", "", group.about, "", "Metrics:"]
    lines += [f"  - {entry if isinstance(entry, str) else json_text(entry)}" for entry in group.metrics]
    return "\n".join([*lines, "", f"Aggregator: {json_text(group.aggregator)}"])


def _default(value: Any) -> str:
    written = json.dumps(msgspec.to_builtins(value))
    return written if len(written) <= _LONGEST else "its own, shown below"


def _described(entry: CatalogEntry) -> str:
    short = f" (short: {entry.short})" if entry.short else ""
    lines = [f"{entry.name}{short}, family {entry.family}", "", entry.doc, "", "Defaults:"]
    width = max(len(option.name) for option in entry.options)
    lines += [
        f"  {option.name.ljust(width)}  {option.type}, default {_default(option.default)}" for option in entry.options
    ]
    expected = "`expected_output`" if entry.reads_expected else ""
    keys = [f"`metadata.{key}`" for key in entry.reads]
    lines += ["", f"Reads: {', '.join(filter(None, [expected, *keys])) or 'no expected output and no metadata'}."]
    if entry.prompt is not None:
        lines += ["", "Prompt:", *(f"  {line}".rstrip() for line in entry.prompt.splitlines())]
    return "\n".join(lines)


def _plain(entry: CatalogEntry) -> dict[str, Any]:
    options = [{**option._asdict(), "default": msgspec.to_builtins(option.default)} for option in entry.options]
    return {**entry._asdict(), "options": options, "quotes": sorted(entry.quotes)}
