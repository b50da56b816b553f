# Made by samegrad._keras.stubs. Do not edit.
from keras.src.export.saved_model import ExportArchive as ExportArchive
