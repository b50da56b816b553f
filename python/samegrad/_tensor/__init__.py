"""Tensors: conversion, shapes and sizes, indexing, other packages' memory, the example axis."""
