"""Settings of Sphinx for the site; `build_site.py` prepares what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers import JsonLexer, TextLexer
from sphinx.application import Sphinx

import deemster
from deemster.judges.metric_catalog import WORKED_EXAMPLES

project = "deemster"
author = "the deemster project"
release = deemster.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "search_index"]
root_doc = "index"
default_role = "literal"  # docstrings write code in single backticks, as Markdown does
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"

myst_heading_anchors = 4
highlight_language = "text"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "deemster"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_favicon = "static/favicon.svg"
html_sidebars = {"*": []}  # pages of the root have no section
html_use_index = False
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "deemster", "image_light": "static/favicon.svg", "image_dark": "static/favicon.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 10,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": [],
    "footer_end": [],
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def inline_pictures(app: Sphinx, doctree: nodes.document, _: str) -> None:
    """Put SVG pictures into the page itself, where they follow the page's light or dark colours."""
    for image in list(doctree.findall(nodes.image)):
        if image["uri"].endswith(".svg"):
            picture = (Path(app.srcdir) / image["uri"]).read_text(encoding="utf-8")
            image.replace_self(nodes.raw("", f'<div class="picture">{picture}</div>', format="html"))


def drop_worked_examples(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Leave to the pages of metrics what they compute from the docstrings."""
    if WORKED_EXAMPLES in lines:
        del lines[lines.index(WORKED_EXAMPLES) :]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect what is written here; Sphinx calls it."""
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("csv", TextLexer)
    app.connect("doctree-resolved", inline_pictures)
    app.connect("autodoc-process-docstring", drop_worked_examples, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
