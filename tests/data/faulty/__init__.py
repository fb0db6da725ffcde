"""Faults on purpose: each variant goes wrong in its own way, for real.

``FAULTY_LOG`` names a file to which every execution appends its variant's name and the problem's size.
"""
