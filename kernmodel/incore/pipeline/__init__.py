"""A core's pipeline, cycle by cycle: issue with the renamer's choice of ports, scheduler, ports, retirement, fetch."""
