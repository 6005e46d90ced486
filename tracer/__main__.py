"""python -m tracer is the `mercury` command."""

import sys

from pslite_ext.command.main import main

sys.exit(main())
