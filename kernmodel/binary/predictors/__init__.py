"""Predictors of basic blocks behind one protocol: the in-core analysis of this house, other tools, files."""
