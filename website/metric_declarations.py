"""What is made from the classes of metrics, so that a new one is declared in its class alone.

The table of names, the stubs of the rooms that export them, and the chapter of the Python reference.
`pytest tests/test_metric_pages.py --refresh-golden -n 0` writes them; without the flag the test compares them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

from deemster.judges import _metric_table
from deemster.judges.geval_definition import preset_names
from deemster.metrics.builtin_metric import BuiltinScorer

SOURCE = Path(__file__).parent.parent / "src" / "deemster"
TABLE = SOURCE / "judges" / "_metric_table.py"
ROOMS = ("metrics", "judges")
READY_MADE = "g-eval"


def metric_classes() -> dict[str, type[BuiltinScorer]]:
    """Every class with an alias, by that: in the order of the table, and what the table lacks in the order of files."""
    declared: dict[str, type[BuiltinScorer]] = {}
    for room in ROOMS:
        for file in sorted((SOURCE / room).glob("*.py")):
            module = importlib.import_module(f"deemster.{room}.{file.stem}".removesuffix(".__init__"))
            for value in vars(module).values():
                if inspect.isclass(value) and value.__module__ == module.__name__ and "alias" in vars(value):
                    declared[value.alias] = value
    return {alias: declared[alias] for alias in _in_order(_metric_table.PLACES, declared)}


def _in_order(listed: Iterable[str], declared: Iterable[str]) -> list[str]:
    names = list(declared)
    kept = [name for name in listed if name in names]
    return [*kept, *(name for name in names if name not in kept)]


def table_text() -> str:
    """The table of names: what is looked up before the module of a metric is loaded."""
    classes = metric_classes()
    families = dict.fromkeys([*_metric_table.TABLE, *(metric.family for metric in classes.values())])
    short = {metric.short: alias for alias, metric in classes.items() if metric.short}
    lines = [
        '"""Every metric by family, with its class; made from the classes: see website/metric_declarations.py."""',
        "",
        "from __future__ import annotations",
        "",
        "TABLE: dict[str, dict[str, str]] = {",
    ]
    for family in families:
        lines.append(f'    "{family}": {{')
        lines += [
            f'        "{name}": "{_place(metric)}",' for name, metric in classes.items() if metric.family == family
        ]
        lines.append("    },")
    lines += ["}", "# Ready-made judges: an alias, and the metric that takes it as its `preset`."]
    lines += ["PRESETS: dict[str, str] = {"]
    lines += [f'    "{name}": "{READY_MADE}",' for name in _in_order(_metric_table.PRESETS, preset_names())]
    lines += ["}", "SHORT = {", *(f'    "{name}": "{alias}",' for name, alias in short.items()), "}"]
    lines += ["PLACES = {alias: place for group in TABLE.values() for alias, place in group.items()}", ""]
    return "\n".join(lines)


def _place(metric: type) -> str:
    return f"{metric.__module__.removeprefix('deemster.')}:{metric.__name__}"


def stub_text(room: str) -> str:
    """The stub of a room: the metrics that it declares, and what it exports beside them."""
    metrics = [metric for metric in metric_classes().values() if metric.__module__.startswith(f"deemster.{room}.")]
    listed = {place.partition(":")[2] for place in _metric_table.PLACES.values()}
    others = (SOURCE / room / "__init__.pyi").read_text(encoding="utf-8").splitlines()
    lines = [*map(_import_line, metrics), *(line for line in others if line.split()[-1] not in listed)]
    return "".join(f"{line}\n" for line in sorted(set(lines), key=str.lower))


def _import_line(metric: type) -> str:
    return f"from {metric.__module__} import {metric.__name__} as {metric.__name__}"


def reference_table() -> Iterator[str]:
    """The metrics in the chapter of the Python reference."""
    yield from ("| name | in a suite |", "|---|---|")
    for alias, metric in metric_classes().items():
        if metric.__module__.startswith("deemster.metrics."):
            yield f"| `{metric.__name__}` | [`{alias}`](../metrics/{metric.family}.md#{alias}) |"
