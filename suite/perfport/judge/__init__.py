"""What stored results say: claims, portability, cross-tuning, one run against another."""
