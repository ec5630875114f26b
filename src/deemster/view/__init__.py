"""The web viewer over the store: a server on loopback, its JSON answers, labels, and exports as static files."""
