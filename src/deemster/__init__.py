"""deemster judges what language-model applications produce, and judges the judges.

    import deemster as dm

    report = dm.evaluate("golden.yml", outputs="answers.yml", metrics=["exact-match", "rouge-l"])
    print(report.to_markdown())

The root holds the verbs and the main nouns; families such as `dm.metrics`, `dm.judges` and `dm.stats` hold the rest.
Every name is loaded when it is first used: importing the package loads nothing but this file.
Where a package has a stub, `__init__.pyi`, its names are declared there alone, for type checkers and for Python.
"""

import importlib
import sys

__version__ = "0.1.0"
# What a family of an earlier version is called now; until 1.0.
RENAMED = {"alignment": "agreement"}


def declared_names(package: str) -> dict[str, str]:
    """The names that the stub of a package declares, each with the module that it comes from."""
    folder = sys.modules[package].__path__[0]
    with open(f"{folder}/__init__.pyi", encoding="utf-8") as stub:  # noqa: PTH123 - pathlib takes long to load
        words = [line.split() for line in stub if line.startswith("from deemster")]
    return {name: module for _, module, _, name, *_ in words}


def lazy_names(package: str) -> object:
    """The `__getattr__` of a package that loads each name of its stub, `__init__.pyi`, when it is first used.

    It knows `__all__` too: all names but those of families.

    Args:
        package: The package's own name.
    """

    def load(name: str) -> object:
        if name == "__all__":
            return sorted(name for name, module in declared_names(package).items() if module != package)
        module = None if name.startswith("__") else declared_names(package).get(name)
        if module is None:
            hint = f"; it is `{package}.{RENAMED[name]}` now" if name in RENAMED else ""
            raise AttributeError(f"module `{package}` has no attribute `{name}`{hint}")
        if module == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


__getattr__ = lazy_names(__name__)


def __dir__() -> list[str]:
    return [*declared_names(__name__), "__version__"]
