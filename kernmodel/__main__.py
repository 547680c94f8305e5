"""`python -m kernmodel`: the command line."""

import sys

from kernmodel.cli.main import main

sys.exit(main())
