"""What the compiler made of the kernel: compile, assemble, decode, and find the loop."""
