"""People's labels, and what they say about a judge: label sheets, corrected numbers."""
