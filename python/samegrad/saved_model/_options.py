"""Options of TensorFlow's functions, of which none changes what is saved here."""

from __future__ import annotations

from typing import Any


class SaveOptions:
    """Options of `saved_model.save`.

    Args:
        namespace_whitelist: Ignored: there are no operations of others.
        save_debug_info: Ignored.
        function_aliases: Ignored.
        **options: TensorFlow's further options, ignored.

    Example:
        >>> SaveOptions(save_debug_info=True).save_debug_info
        True
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        **options: Any,
    ) -> None:
        self.namespace_whitelist = namespace_whitelist
        self.save_debug_info = save_debug_info
        self.function_aliases = function_aliases
        self.__dict__.update(options)


class LoadOptions:
    """Options of `saved_model.load`.

    Args:
        allow_partial_checkpoint: Ignored: a model is loaded whole.
        experimental_io_device: Ignored.
        experimental_skip_checkpoint: Ignored.
        **options: TensorFlow's further options, ignored.

    Example:
        >>> LoadOptions().allow_partial_checkpoint
        False
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: Any = None,
        experimental_skip_checkpoint: bool = False,
        **options: Any,
    ) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.__dict__.update(options)
