"""What the hardware can do: machine files in, `Machine` values out."""
