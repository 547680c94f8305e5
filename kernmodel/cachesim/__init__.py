"""Exact cache simulation: a hierarchy of caches, driven by a trace of accesses or by the loops of a program.

Knows nothing of C sources or machine files: addresses, lines and counters only. `kernmodel.traffic` makes a hierarchy
of a machine, and a program of a loop nest.
"""
