"""`python -m samegrad_doctor`: the command `samegrad-doctor`."""

import sys

from samegrad_doctor.cli import main

if __name__ == "__main__":
    sys.exit(main())
