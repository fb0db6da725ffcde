"""The history of nights, and a run judged against it."""
