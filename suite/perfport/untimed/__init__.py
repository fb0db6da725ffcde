"""Variants run once each, not measured: verified, counted, compiled, shown."""
