"""People's labels, and what they say about a judge: label sheets, corrected numbers."""

from deemster import load_lazily

load_lazily(__name__)
