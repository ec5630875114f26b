"""The index that `static/searchtools.js` searches: every section of the site, with its title, its page and its text.

It takes the place of the index of Sphinx, which knows words of pages only, and keeps `timeout_s` as one word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# How much what is found on pages counts, by how their paths begin; the first that fits. What tells how to do a thing
# comes before what has an entry for every name, and before what tells of the past.
WEIGHTS = {
    "guide/migrate-": 0.5,
    "guide/": 1.0,
    "getting-started": 1.0,
    "faq": 1.0,
    "concepts": 0.9,
    "metrics/": 0.8,
    "reference/python-": 0.5,
    "reference/": 0.7,
    "examples/": 0.6,
    "comparison": 0.6,
    "statistics-background": 0.6,
    "": 0.3,
}
PARTS = (nodes.section, addnodes.desc)


def setup(app: Sphinx) -> dict[str, Any]:
    """Collect the sections of each page as it is written, and write them in the end; Sphinx calls it."""
    entries: list[dict[str, Any]] = []

    def collect(_app: Sphinx, doctree: nodes.document, page: str) -> None:
        entries.extend(sections(doctree, page))

    def write(app: Sphinx, _error: Exception | None) -> None:
        ordered = sorted(entries, key=lambda entry: entry["url"])
        text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
        Path(app.outdir, "searchindex.js").write_text(f"Search.setIndex({text})", encoding="utf-8")

    app.connect("doctree-resolved", collect)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def sections(doctree: nodes.document, page: str) -> list[dict[str, Any]]:
    """The sections of a page and the names it describes, each with the text that is not that of one inside it."""
    found: list[dict[str, Any]] = []
    for part in doctree.findall(lambda node: isinstance(node, PARTS)):
        title, *rest = part.children
        name = title.get("fullname") if isinstance(title, addnodes.desc_signature) else title.astext()
        anchor = next(iter(part["ids"] or title["ids"]), None)
        if anchor is None or (isinstance(part, addnodes.desc) and isinstance(part.parent, addnodes.desc_content)):
            continue
        found.append(
            {
                "url": f"{page}.html#{anchor}",
                "page": found[0]["title"] if found else name,
                "title": name,
                "text": " ".join(" ".join(own_text(child) for child in rest).split()),
                "weight": weight(page),
            }
        )
    return found


def own_text(node: nodes.Node) -> str:
    """The text of a node without that of sections and of names that are described in it."""
    if isinstance(node, nodes.section) or (isinstance(node, addnodes.desc) and node.parent.tagname != "desc_content"):
        return ""
    return " ".join(map(own_text, node.children)) if any(True for _ in node.findall(addnodes.desc)) else node.astext()


def weight(page: str) -> float:
    """How much what is found on a page counts."""
    return next(value for start, value in WEIGHTS.items() if page.startswith(start))
