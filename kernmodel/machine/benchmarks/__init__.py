"""What other tools' micro-benchmarks print, as bandwidths and peaks of a machine file."""
