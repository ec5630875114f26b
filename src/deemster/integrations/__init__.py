"""deemster in other tools: the pytest plugin."""
