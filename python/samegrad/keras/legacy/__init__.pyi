# Made by samegrad._keras.stubs. Do not edit.
from samegrad.keras.legacy import saving as saving
