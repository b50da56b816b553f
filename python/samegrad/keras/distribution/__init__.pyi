# Made by samegrad._keras.stubs. Do not edit.
from keras.src.distribution.distribution_lib import DataParallel as DataParallel
from keras.src.distribution.distribution_lib import DeviceMesh as DeviceMesh
from keras.src.distribution.distribution_lib import LayoutMap as LayoutMap
from keras.src.distribution.distribution_lib import ModelParallel as ModelParallel
from keras.src.distribution.distribution_lib import TensorLayout as TensorLayout
from keras.src.distribution.distribution_lib import distribute_tensor as distribute_tensor
from keras.src.distribution.distribution_lib import distribution as distribution
from keras.src.distribution.distribution_lib import get_device_count as get_device_count
from keras.src.distribution.distribution_lib import initialize as initialize
from keras.src.distribution.distribution_lib import list_devices as list_devices
from keras.src.distribution.distribution_lib import set_distribution as set_distribution
