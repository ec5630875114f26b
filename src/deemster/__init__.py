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

__version__ = "0.2.0"
# What a name of an earlier version is called now; until 1.0.
RENAMED = {
    "Invocation": "records.Invocation",
    "MetricsResult": "agreement.MetricsResult",
    "Record": "monitoring.recording_writer.Record",
    "RubricItem": "datasets.RubricItem",
    "StoreError": "errors.StoreError",
    "Vote": "judges.Vote",
    "agreement.align": "compute_metrics",
    "align": "compute_metrics",
    "alignment": "agreement",
    "audit.ModelLimits": "ModelCalls",
    "compare_judges": "agreement.compare_judges",
    "load_comparison": "comparison.load_comparison",
    "parse_metric": "judges.parse_metric",
}


class LazyPackage(type(sys)):
    """A package whose names stand in its stub, `__init__.pyi`, alone; each is loaded when it is first used."""

    def declared_names(self) -> dict[str, str]:
        """Each name with the module that it comes from; a family comes from the package itself."""
        if "_declared" not in vars(self):
            with open(f"{self.__path__[0]}/__init__.pyi", encoding="utf-8") as stub:  # noqa: PTH123 - pathlib loads long
                words = [line.split() for line in stub if line.startswith("from deemster")]
            self._declared = {name: module for _, module, _, name, *_ in words}
        return self._declared

    def __getattr__(self, name: str) -> object:
        if name == "__all__":
            return sorted(name for name, module in self.declared_names().items() if module != self.__name__)
        module = None if name.startswith("_") else self.declared_names().get(name)
        if module is None:
            old = f"{self.__name__}.{name}".removeprefix(f"{__name__}.")
            hint = f"; it is `{__name__}.{RENAMED[old]}` now" if old in RENAMED else ""
            raise AttributeError(f"module `{self.__name__}` has no attribute `{name}`{hint}")
        if module == self.__name__:
            return importlib.import_module(f"{module}.{name}")
        value = getattr(importlib.import_module(module), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # Whoever imports the file `cohen_kappa` first does not put it in the place of the function of that name.
        if isinstance(value, type(sys)) and self.declared_names().get(name, self.__name__) != self.__name__:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*self.declared_names(), *(name for name in vars(self) if name.startswith("__"))]


def load_lazily(package: str) -> None:
    """Have a package load each name of its stub when it is first used.

    Args:
        package: The package's own name.
    """
    sys.modules[package].__class__ = LazyPackage


load_lazily(__name__)
