# Made by samegrad._keras.stubs. Do not edit.
from samegrad.keras.datasets import boston_housing as boston_housing
from samegrad.keras.datasets import california_housing as california_housing
from samegrad.keras.datasets import cifar10 as cifar10
from samegrad.keras.datasets import cifar100 as cifar100
from samegrad.keras.datasets import fashion_mnist as fashion_mnist
from samegrad.keras.datasets import imdb as imdb
from samegrad.keras.datasets import mnist as mnist
from samegrad.keras.datasets import reuters as reuters
