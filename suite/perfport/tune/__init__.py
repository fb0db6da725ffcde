"""Searching over the tunables of variants: `perfport tune`, whose winners become parameters of a device profile."""
