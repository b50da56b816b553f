"""`import samegrad.compat.v2 as tf`: samegrad itself."""

from __future__ import annotations

import importlib
import sys

sys.modules[__name__] = importlib.import_module("samegrad")
