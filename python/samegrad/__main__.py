"""`python -m samegrad` is the command `samegrad`."""

import sys

from samegrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
