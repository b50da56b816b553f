# Made by samegrad._keras.stubs. Do not edit.
from keras.src.legacy.preprocessing.sequence import TimeseriesGenerator as TimeseriesGenerator
from keras.src.legacy.preprocessing.sequence import make_sampling_table as make_sampling_table
from keras.src.legacy.preprocessing.sequence import skipgrams as skipgrams
from keras.src.utils.sequence_utils import pad_sequences as pad_sequences
