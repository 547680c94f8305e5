"""Exact formulas in sizes and loop variables, with the algebra that kernels need (docs/architecture.md)."""
