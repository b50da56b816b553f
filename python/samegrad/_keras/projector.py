"""Configuration of TensorBoard's projector of embeddings, in protobuf's text format."""

from __future__ import annotations

import json


class _Embedding:
    """A table of embeddings, by the names of the projector's configuration."""

    def __init__(self) -> None:
        self.tensor_name = ""
        self.metadata_path = ""


class _Embeddings(list[_Embedding]):
    def add(self) -> _Embedding:
        self.append(_Embedding())
        return self[-1]


class ProjectorConfig:
    """The embeddings that are shown."""

    def __init__(self) -> None:
        self.embeddings = _Embeddings()


def text_of(config: ProjectorConfig) -> str:
    """The configuration as text.

    Args:
        config: What is shown.

    Example:
        >>> config = ProjectorConfig()
        >>> config.embeddings.add().tensor_name = "table"
        >>> print(text_of(config), end="")
        embeddings {
          tensor_name: "table"
        }
    """
    lines = []
    for embedding in config.embeddings:
        fields = [(name, value) for name, value in vars(embedding).items() if value]
        inside = [f"  {name}: {json.dumps(value)}" for name, value in fields]
        lines += ["embeddings {", *inside, "}"]
    return "".join(f"{line}\n" for line in lines)
