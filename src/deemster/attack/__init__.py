"""Adversarial samples: the embedded seeds and the datasets that are made of them."""
