"""Assertions about predictions, for continuous integration: `kernmodel check FILE.yml` (docs/check.md).

`model` has the values, `file` reads the file, `judge` predicts each kernel and judges its assertions, `changes`
compares with what an earlier run found.
"""
