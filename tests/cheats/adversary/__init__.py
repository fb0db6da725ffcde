"""Cheats on purpose: each variant wants to be ranked without doing the work that is ranked.

They are sorted by what they would spoil for the variants beside them: nothing (``within_variant``), what a group shares
(``within_group``), or the worker process (``within_process``).
"""
