"""What a change of the machine, of flags or of the compiler does to the runtime, and what every figure is worth."""
