"""What every test may ask for: golden files, compared byte for byte and rewritten on demand."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline measures how busy the machine is, and fails tests that are right.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="Rewrite the golden files (and the tested blocks of the documents) with what the tests produce.",
    )


@pytest.fixture
def refresh_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--refresh-golden"))


@pytest.fixture
def golden(refresh_golden: bool) -> Callable[[str, str | bytes], None]:
    """Compare a text with `tests/golden/<name>` byte for byte, or rewrite that file with `--refresh-golden`."""

    def compare(name: str, text: str | bytes) -> None:
        path = GOLDEN / name
        data = text.encode("utf-8") if isinstance(text, str) else text
        if refresh_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            return
        if not path.is_file():
            pytest.fail(f"No golden file {path}: write it with `pytest --refresh-golden`, then read it.")
        held = path.read_bytes()
        if held != data:
            lines = difflib.unified_diff(
                held.decode("utf-8", "replace").splitlines(),
                data.decode("utf-8", "replace").splitlines(),
                fromfile=f"golden/{name}",
                tofile="produced",
                lineterm="",
            )
            shown = "\n".join(lines) or "They differ in line ends or in bytes that are no UTF-8."
            pytest.fail(f"{name} differs from its golden file:\n{shown}")

    return compare
