"""How many samples an evaluation needs."""
