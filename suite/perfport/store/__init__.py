"""Stored runs: the results folder, the collection of any number of them, ratios of times."""
