"""Measuring: samples and their intervals, cold caches, foreign load, ceilings and the bounds that follow from them."""
