"""Where samegrad answers otherwise than TensorFlow: by decision, or as something is lacking."""

OURS: dict[str, object] = {}
LACKING: dict[str, str] = {}
