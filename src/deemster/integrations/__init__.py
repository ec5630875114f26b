"""deemster with other tools: the pytest plugin, importers of their files, and exporters to them."""
