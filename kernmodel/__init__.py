"""kernmodel: how fast a loop kernel can be on a machine, and what holds it back, before anything is run.

The way through the package follows the data: `source` (C code), `assembly` (compiled code) and `machine` (hardware)
feed `traffic` and `incore`, which feed `models`; `studies` asks questions over many predictions, `report` shows them,
`cli` is the command line. See docs/architecture.md.
"""

__version__ = "0.1.0"
