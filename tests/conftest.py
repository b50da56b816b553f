"""Every graph of the tests is verified after each pass."""

import os

os.environ.setdefault("SAMEGRAD_VERIFY", "1")
