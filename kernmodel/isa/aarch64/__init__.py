"""AArch64, whole in this folder: `isa.AArch64` has the members that all other rooms go by."""
