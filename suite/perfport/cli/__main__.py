"""``python -m perfport.cli``."""

from .app import main

main()
