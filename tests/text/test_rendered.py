"""A result that knows its sections has every form and can be saved."""

from __future__ import annotations

import json

import msgspec
import pytest

from deemster.errors import ReportError
from deemster.text.destination import Destination
from deemster.text.rendered import Rendered
from deemster.text.text_sections import DataText, TextSection, TextTable


class Weather(Rendered, msgspec.Struct, frozen=True):
    days: dict[str, str]

    def sections(self):
        rows = [(DataText(day), DataText(sky)) for day, sky in self.days.items()]
        return [TextSection(("Weather",), [("Three days.",)], TextTable(("day", "sky"), rows), key="headline")]


WEATHER = Weather({"tuesday": "<b>rain</b>", "monday": "sun"})


def test_every_form_is_made_of_the_sections_and_escapes_data():
    for text in (WEATHER.to_markdown(), WEATHER.to_html(), WEATHER._repr_html_()):
        assert "Three days." in text
        assert "<b>rain" not in text
        assert "&lt;b&gt;rain" in text


def test_page_has_the_lines_in_its_head_and_the_table_below():
    page = WEATHER.to_html()
    assert page.index("Three days.") < page.index("Overview") < page.index("monday")


def test_json_has_maps_by_key_so_that_equal_results_are_equal_bytes():
    turned = Weather(dict(reversed(WEATHER.days.items())))
    assert turned.to_json() == WEATHER.to_json()
    assert json.loads(WEATHER.to_json()) == {"days": WEATHER.days}


@pytest.mark.parametrize(("name", "begins"), [("w.json", "{"), ("w.md", "# Weather"), ("w.HTML", "<!doctype html>")])
def test_extension_says_the_format_and_folders_are_created(tmp_path, name, begins):
    file = tmp_path / "new" / name
    WEATHER.save(file)
    assert file.read_text(encoding="utf-8").startswith(begins)


@pytest.mark.parametrize("name", ["w.csv", "w.xml", "w"])
def test_other_extensions_are_refused_before_a_folder_is_made(tmp_path, name):
    with pytest.raises(ReportError, match=r"`\.json`, `\.md`, `\.html`"):
        WEATHER.save(tmp_path / "new" / name)
    assert not (tmp_path / "new").exists()


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ReportError, match="not as junit"):
        WEATHER.write(Destination("junit", str(tmp_path / "w.xml")))
