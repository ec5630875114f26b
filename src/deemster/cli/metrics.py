"""`deemster metrics`."""

from __future__ import annotations

import json
from typing import Any

import click

from deemster.run.catalog import Entry, describe, entries


@click.command("metrics", short_help="Show the catalog: what each metric reads, returns and can be told.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the catalog as JSON.")
def command(*, name: str | None, as_json: bool) -> None:
    """Show the catalog: what each metric reads, returns and can be told.

    NAME is an alias or a short name, such as `rouge-l` or `ndcg`. A star marks the core metrics.
    """
    chosen = entries() if name is None else (describe(name),)
    if as_json:
        click.echo(json.dumps([_plain(entry) for entry in chosen], indent=2, ensure_ascii=False, default=str))
    elif name is None:
        click.echo(_listed(chosen))
    else:
        click.echo(_described(chosen[0]))


def _listed(chosen: tuple[Entry, ...]) -> str:
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
    return "\n".join(lines)


def _described(entry: Entry) -> str:
    short = f" (short: {entry.short})" if entry.short else ""
    lines = [f"{entry.name}{short}, family {entry.family}", "", entry.doc, "", "Defaults:"]
    width = max(len(option.name) for option in entry.options)
    lines += [
        f"  {option.name.ljust(width)}  {option.type}, default {json.dumps(option.default, default=list)}"
        for option in entry.options
    ]
    expected = "`expected_output`" if entry.reads_expected else ""
    keys = [f"`metadata.{key}`" for key in entry.reads]
    lines += ["", f"Reads: {', '.join(filter(None, [expected, *keys])) or 'only the output'}."]
    if entry.prompt is not None:
        lines += ["", "Prompt:", *(f"  {line}".rstrip() for line in entry.prompt.splitlines())]
    return "\n".join(lines)


def _plain(entry: Entry) -> dict[str, Any]:
    options = [option._asdict() for option in entry.options]
    return {**entry._asdict(), "options": options, "quotes": sorted(entry.quotes)}
