"""What is shown: sections, number formats, plots, and their layouts. Knows no report and no judge."""
