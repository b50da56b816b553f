"""Graphs are verified after each pass; plans are for one machine; Keras has its first types."""

from __future__ import annotations

import os
import sys

import pytest

os.environ.setdefault("SAMEGRAD_VERIFY", "1")
# Plans are asserted as they are for caches of these sizes, on any machine.
os.environ.setdefault("SAMEGRAD_MACHINE", "l1=32k,l2=1m,l3=32m")


@pytest.fixture(autouse=True)
def _types_of_a_new_process() -> None:
    """Keras keeps the policy that its first layer had, whatever `set_floatx` says later."""
    config = sys.modules.get("keras.src.backend.config")
    state = sys.modules.get("keras.src.backend.common.global_state")
    if config is not None and state is not None:
        config.set_floatx("float32")
        state.set_global_attribute("dtype_policy", None)
