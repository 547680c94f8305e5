"""`python -m kernmodel`: the command line."""

import sys

from kernmodel.cli.main import console

sys.exit(console())
