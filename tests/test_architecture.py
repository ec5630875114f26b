"""`docs/architecture.md` names no file that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deemster"
PAGE = ROOT / "docs" / "architecture.md"


def test_every_file_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+/[a-z_]+\.py)`", text))
    assert named
    assert sorted(name for name in named if not (SOURCE / name).is_file()) == []
