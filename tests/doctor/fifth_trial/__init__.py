"""The fifth evaluation set of the doctor: see README.md."""

MODULES = {
    "torch": (
        "rounds",
        "masks",
        "objects",
        "batches",
        "moving",
        "clipped",
        "averaged",
        "shown",
    ),
    "processes": ("wrapped",),
    "jax": ("on_devices",),
    "samegrad": ("mirrored_steps",),
}
