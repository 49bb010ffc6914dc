"""`python -m benchmarks [NAME...] [--markdown FILE]`: all benchmarks, or those named."""

import sys

from .harness import main

sys.exit(main())
