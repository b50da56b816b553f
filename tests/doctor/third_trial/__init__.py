"""The third evaluation set of the doctor: see README.md."""

MODULES = {
    "torch": (
        "windows",
        "counts",
        "pairs",
        "objectives",
        "bounds",
        "printed",
    ),
    "processes": ("processes_of_ddp",),
    "jax": ("devices",),
    "samegrad": ("mirrored",),
}
