"""The pictures of the documents show the numbers that the repository holds."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from website.pictures import pictures

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def test_pictures_match_their_numbers(refresh_golden):
    for name, fresh in pictures().items():
        if refresh_golden:
            (FOLDER / name).write_text(fresh, encoding="utf-8")
        assert (FOLDER / name).read_text(encoding="utf-8") == fresh, name


def test_every_picture_is_xml_with_a_title():
    untitled = [
        path.name for path in FOLDER.glob("*.svg") if ET.parse(path).find("{http://www.w3.org/2000/svg}title") is None
    ]
    assert untitled == []
