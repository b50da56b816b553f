# Made by samegrad._keras.stubs. Do not edit.
from keras.src.utils.image_dataset_utils import image_dataset_from_directory as image_dataset_from_directory
from keras.src.utils.text_dataset_utils import text_dataset_from_directory as text_dataset_from_directory
from keras.src.utils.timeseries_dataset_utils import timeseries_dataset_from_array as timeseries_dataset_from_array
from samegrad.keras.preprocessing import image as image
from samegrad.keras.preprocessing import sequence as sequence
from samegrad.keras.preprocessing import text as text
