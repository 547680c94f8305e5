"""Measurements on this host: code, kernels, bandwidths and peaks, and the probe that makes a machine file of them."""
