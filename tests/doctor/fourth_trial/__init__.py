"""The fourth evaluation set of the doctor: see README.md."""

MODULES = {
    "torch": (
        "accumulating",
        "scaling",
        "labels",
        "dense",
        "gathering",
        "moments",
        "generative",
        "updating",
        "logging_losses",
    ),
    "processes": ("real_ddp",),
    "jax": ("over_devices",),
    "samegrad": ("in_strategies",),
}
