"""Answers as text: a module an answer, which makes blocks of `report.layout` of it."""
