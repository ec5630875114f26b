"""`deemster metrics`: the catalog of metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._command import Verb
from deemster.cli._console import write_out
from deemster.cli.report_options import ReportOptions, result_options, write_texts

if TYPE_CHECKING:
    from deemster.judges.metric_catalog import CatalogEntry, CatalogOption
    from deemster.judges.metric_groups import MetricGroup

_LONGEST_DEFAULT = 60
_COMMON_OPTIONS = frozenset({"name", "threshold", "where"})


@click.command(
    "metrics",
    cls=Verb,
    examples=["deemster metrics", "deemster metrics recall@k"],
    see_also=["run", "audit metrics"],
)
@click.argument("name", required=False)
@result_options("json")
def command(*, name: str | None, reports: ReportOptions) -> None:
    """Show the catalog: what each metric reads, returns, its options.

    NAME is an alias or a short name, such as `rouge-l` or `ndcg`, or a ready-made group, such as `generation`. A star
    marks the core metrics.
    """
    import msgspec

    from deemster.judges.metric_catalog import describe, entries
    from deemster.judges.metric_groups import GROUPS

    if name is not None and name in GROUPS:
        value, text = msgspec.to_builtins(GROUPS[name]), _describe_group(GROUPS[name])
    else:
        chosen = entries() if name is None else (describe(name),)
        value = [_plain_entry(entry) for entry in chosen]
        text = _list_entries(chosen, tuple(GROUPS.values())) if name is None else _describe_entry(chosen[0])
    write_texts(reports, {"json": lambda: json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"})
    if not reports.takes_stdout:
        write_out(f"{text}\n")


def _list_entries(entries: tuple[CatalogEntry, ...], groups: tuple[MetricGroup, ...]) -> str:
    width = max(len(entry.name) for entry in entries) + 1
    lines: list[str] = []
    family = ""
    for entry in entries:
        if entry.family != family:
            family = entry.family
            lines += ["", family] if lines else [family]
        star = "*" if entry.core else " "
        short = f" [{entry.short}]" if entry.short else ""
        extra = f" (needs deemster[{entry.extra}])" if entry.extra else ""
        lines.append(f"  {star} {entry.name.ljust(width)} {entry.summary}{short}{extra}")
    lines += ["", "groups"]
    lines += [f"    {group.name.ljust(width)} {group.about}" for group in groups]
    return "\n".join(lines)


def _describe_group(group: MetricGroup) -> str:
    from deemster.formats.canonical_json import json_text

    lines = [f"{group.name}, a group: `group: {group.name}` in a suite", "", group.about, "", "Metrics:"]
    lines += [f"  - {entry if isinstance(entry, str) else json_text(entry)}" for entry in group.metrics]
    return "\n".join([*lines, "", f"Aggregator: {json_text(group.aggregator)}"])


def _describe_option(option: CatalogOption, width: int) -> str:
    """An option on a line: what it takes, and its default where it has one."""
    import msgspec

    line = f"  {option.name.ljust(width)}  {option.type}"
    if option.default in (None, [], (), {}):
        return line
    text = option.default if isinstance(option.default, str) else json.dumps(msgspec.to_builtins(option.default))
    return f"{line}, default {text if len(text) <= _LONGEST_DEFAULT else 'its own, shown below'}"


def _describe_entry(entry: CatalogEntry) -> str:
    short = f" (short: {entry.short})" if entry.short else ""
    lines = [f"{entry.name}{short}, family {entry.family}", "", entry.doc, ""]

    own_options = [option for option in entry.options if option.name not in _COMMON_OPTIONS]
    width = max((len(option.name) for option in own_options), default=0)
    threshold = next(option.default for option in entry.options if option.name == "threshold")
    common = f"`name`, `where` and `threshold` (default {'none' if threshold is None else threshold})"
    lines += [f"Options, beside {common}:" if own_options else f"Options: {common}"]
    lines += [_describe_option(option, width) for option in own_options]
    expected = "`expected_output`" if entry.reads_expected else ""
    keys = [f"`metadata.{key}`" for key in entry.reads]
    lines += ["", f"Reads: {', '.join(filter(None, [expected, *keys])) or 'no expected output and no metadata'}."]
    lines += [f"`where: auto`: {describe_needs(entry.needs)}."]
    if entry.extra:
        lines += [f"Needs an extra: pip install 'deemster[{entry.extra}]'."]
    if entry.prompt is not None:
        lines += ["", "Prompt:", *(f"  {line}".rstrip() for line in entry.prompt.splitlines())]
    return "\n".join(lines)


def describe_needs(needs: tuple[str, ...]) -> str:
    """The samples that a metric with `where: auto` applies to."""
    if not needs:
        return "all samples, since it needs nothing that a sample may lack"
    paths = [[f"`{_sample_path(name)}`" for name in names.split("|")] for names in needs]
    return f"samples with {' and '.join(' or '.join(each) for each in paths)}"


def _sample_path(name: str) -> str:
    return name if name == "expected_output" else f"metadata.{name}"


def _plain_entry(entry: CatalogEntry) -> dict[str, Any]:
    import msgspec

    options = [{**option._asdict(), "default": msgspec.to_builtins(option.default)} for option in entry.options]
    return {**entry._asdict(), "options": options, "quotes": sorted(entry.quotes)}
