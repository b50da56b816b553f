"""`keras.experimental`: schedules of today."""

from keras.src.optimizers.schedules import CosineDecay, CosineDecayRestarts

__all__ = ["CosineDecay", "CosineDecayRestarts"]
