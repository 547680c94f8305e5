"""Suites of kernels: built in many variants, counted, measured and predicted; how far predictions are off."""
