"""Which value of a block waits for which: data flow of instructions, addresses and memory, chains and cycles."""
