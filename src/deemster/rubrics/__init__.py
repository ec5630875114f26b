"""What good means: criteria, options, rubrics, and the scores that verdicts come to."""

from deemster import load_lazily

load_lazily(__name__)
