"""CITATION.cff is a valid citation file, of the version that the package has."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

import deemster as dm

ROOT = Path(__file__).parent.parent
REQUIRED = {"cff-version", "message", "title", "authors"}
# The keys of version 1.2.0 of the format that stand at the top of a file.
KNOWN = REQUIRED | {
    *("abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license", "license-url"),
    *("preferred-citation", "references", "repository", "repository-artifact", "repository-code", "type", "url"),
    "version",
}


def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_citation_file_has_what_the_format_requires_and_nothing_else():
    found = citation()
    assert REQUIRED <= found.keys() <= KNOWN
    assert found["cff-version"] == "1.2.0"
    assert found["type"] == "software"
    assert all("name" in author or {"family-names", "given-names"} <= author.keys() for author in found["authors"])
    assert all(isinstance(word, str) for word in found["keywords"])
    assert len(set(found["keywords"])) == len(found["keywords"])


def test_citation_is_of_the_version_license_and_words_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = citation()
    assert str(found["version"]) == project["version"] == dm.__version__
    assert found["license"] == project["license"]
    assert found["abstract"] == project["description"]
    assert found["keywords"] == project["keywords"]
