"""Sweeps: grids of points, evaluated in this process or many, as rows that a file keeps."""
