"""What holds layer conditions to the simulation: doubts about them, whether both agree, and why they differ."""
