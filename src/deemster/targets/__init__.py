"""The system under test behind one call."""
