"""A difference between two ways to run a program."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Difference:
    """What went wrong, between which two ways.

    Args:
        kind: "error", "values" (against the interpreter) or "bits".
        place: Which result, in which mode.
        said: The numbers, or the message.
    """

    kind: str
    place: str
    said: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}\n    {self.said}"

    def key(self) -> str:
        """Equal for what is probably the same fault, while a program shrinks."""
        if self.kind == "error":
            return "error " + self.said.split(":")[0] + self.said.split("]")[0][:60]
        return self.kind
