# Made by samegrad._keras.stubs. Do not edit.
from keras.src.datasets.imdb import get_word_index as get_word_index
from keras.src.datasets.imdb import load_data as load_data
