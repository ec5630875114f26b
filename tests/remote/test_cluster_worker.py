from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import deemster as dm
from deemster.remote._cluster_worker import run_part


def test_module_that_a_worker_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not above: the tests of the cluster set what Ray reads when it is imported.
    from ray import cloudpickle

    (tmp_path / "app_of_mine.py").write_text("def answer(input):\n    return 'x'\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings = cloudpickle.dumps(importlib.import_module("app_of_mine").answer)
    sys.path.remove(str(tmp_path))
    monkeypatch.delitem(sys.modules, "app_of_mine")
    with pytest.raises(dm.ConfigurationError, match=r"No module named 'app_of_mine'.*installed on every node"):
        next(run_part(settings, list(sys.path), b"", None))
