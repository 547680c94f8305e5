"""Files in YAML whose keys are declared: reading them with lines, and collecting everything that is wrong."""
