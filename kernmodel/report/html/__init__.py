"""Answers as pages: one self-contained file of HTML, with charts that its own script draws (docs/report.md)."""
