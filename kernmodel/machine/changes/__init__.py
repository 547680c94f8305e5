"""What-if on a machine file: its figures by name, new values for them, and what follows from these."""
