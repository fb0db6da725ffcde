"""The suite report as a page that answers by clicking: its data, and the scripts that show them (``page/``)."""
