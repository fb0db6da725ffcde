"""Other tools: their formats read and written, pytest."""
