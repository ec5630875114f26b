"""Rubric grading: what judges are shown, how their replies are read, and what their votes come to."""
