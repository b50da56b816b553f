"""`callbacks.experimental`: callbacks of today."""

from keras.src.callbacks import BackupAndRestore

__all__ = ["BackupAndRestore"]
