"""Options that programs for tf.distribute hand over: they say how, so no result depends on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samegrad._base.enums import Choice
from samegrad._base.shown import shown


@dataclass(frozen=True)
class InputOptions:
    """Options of `experimental_distribute_dataset`.

    The engine gathers batches on a thread of its own and hands out views of one buffer, so that
    there is nothing to fetch to a device. PER_WORKER replication with a function of the
    `InputContext` is what `distribute_datasets_from_function` does.

    Args:
        experimental_fetch_to_device: Ignored.
        experimental_replication_mode: Ignored.
        experimental_place_dataset_on_device: Ignored.
        experimental_per_replica_buffer_size: Ignored.

    Example:
        >>> InputOptions(experimental_fetch_to_device=False).experimental_fetch_to_device
        False
    """

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: Any = None
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


@dataclass(frozen=True)
class RunOptions:
    """Options of `Strategy.run`; both concern TPUs.

    Args:
        experimental_enable_dynamic_batch_size: Any number of examples always runs here.
        experimental_bucketizing_dynamic_shape: Ignored.
        experimental_xla_options: Ignored.

    Example:
        >>> RunOptions().experimental_enable_dynamic_batch_size
        True
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class CommunicationImplementation(Choice):
    """Implementation of collectives; without effect, as sums always follow one tree.

    Example:
        >>> CommunicationImplementation("RING")
        <CommunicationImplementation.RING: 'RING'>
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@dataclass(frozen=True)
class CommunicationOptions:
    """Options of collectives: replicas of one process share memory, nothing is packed or sent.

    Args:
        bytes_per_pack: Ignored.
        timeout_seconds: Ignored: no replica waits for another one.
        implementation: Ignored: a `CommunicationImplementation`, or its name.

    Raises:
        TypeError: `bytes_per_pack` is not an integer.
        ValueError: `bytes_per_pack` is negative, or `implementation` is unknown.
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: Any = CommunicationImplementation.AUTO

    def __post_init__(self) -> None:
        if not isinstance(self.bytes_per_pack, int):
            raise TypeError(
                "[CommunicationOptions] bytes_per_pack must be an integer: got "
                f"{shown(self.bytes_per_pack)}; leave it out."
            )
        if self.bytes_per_pack < 0:
            raise ValueError(
                "[CommunicationOptions] bytes_per_pack must be >= 0: got "
                f"{shown(self.bytes_per_pack)}; leave it out."
            )
        given = self.implementation
        implementation = CommunicationImplementation(
            given.upper() if isinstance(given, str) else given
        )
        object.__setattr__(self, "implementation", implementation)


class CollectiveHints(CommunicationOptions):
    """Options of collectives under their older name.

    Args:
        bytes_per_pack: Ignored.
        timeout_seconds: Ignored.

    Raises:
        ValueError: `bytes_per_pack` is negative.

    Example:
        >>> CollectiveHints(bytes_per_pack=1 << 20).bytes_per_pack
        1048576
    """

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> None:
        super().__init__(bytes_per_pack, timeout_seconds)


class CrossDeviceOps:
    """Algorithm of reductions; ignored, as they always follow one tree."""

    def __init__(self, *settings: Any, **named: Any) -> None:
        """Accept the settings of the algorithm, and ignore them."""


class NcclAllReduce(CrossDeviceOps):
    """Taken and ignored: see `CrossDeviceOps`."""


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Taken and ignored: see `CrossDeviceOps`."""


class ReductionToOneDevice(CrossDeviceOps):
    """Taken and ignored: see `CrossDeviceOps`."""
