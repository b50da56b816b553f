"""The step that summaries are of where none is given, and scopes of their names."""

from __future__ import annotations

from samegrad._surface.boundary import guard
from samegrad.summary._writer import get_step, set_step, summary_scope

__all__ = ["get_step", "set_step", "summary_scope"]
guard(__name__)
