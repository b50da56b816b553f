# Made by samegrad._keras.stubs. Do not edit.
from keras.src.legacy.preprocessing.text import Tokenizer as Tokenizer
from keras.src.legacy.preprocessing.text import hashing_trick as hashing_trick
from keras.src.legacy.preprocessing.text import one_hot as one_hot
from keras.src.legacy.preprocessing.text import text_to_word_sequence as text_to_word_sequence
from keras.src.legacy.preprocessing.text import tokenizer_from_json as tokenizer_from_json
