// The memory of Python's bytes.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>

namespace samegrad {

inline std::span<const std::uint8_t> bytes_of(const pybind11::bytes& bytes) {
  char* begin = nullptr;
  pybind11::ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &begin, &size) != 0) throw pybind11::error_already_set();
  return {reinterpret_cast<const std::uint8_t*>(begin), std::size_t(size)};
}

}  // namespace samegrad
