"""What pages are made of: tables, plots, sentences."""
