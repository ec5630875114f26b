"""deemster."""
