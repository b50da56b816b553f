"""The second evaluation set of the doctor: see README.md."""

MODULES = {
    "torch": (
        "accumulation",
        "tokens",
        "policies",
        "contrast",
        "dense",
        "limits",
        "reports",
    ),
    "processes": ("launched",),
    "jax": ("meshes",),
    "samegrad": ("strategies",),
}
