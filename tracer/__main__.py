"""python -m tracer is the `mercury` command."""

import sys

from tracer.cli import main

sys.exit(main())
