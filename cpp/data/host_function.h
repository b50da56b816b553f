// Host functions: prepare elements of a dataset (strings, and arrays made of them) outside of
// programs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "data/decoded_image.h"
#include "tensor/array.h"

namespace samegrad {

using HostValue = std::variant<Array, std::string>;

// It touches no object of Python: several threads may call it at once, without Python's lock.
class HostFunction {
 public:
  virtual ~HostFunction() = default;
  // Nothing: Python's function has to take this value, or to say what is wrong with it.
  virtual std::optional<HostValue> operator()(const HostValue& value) const = 0;
};

using HostFunctionPtr = std::shared_ptr<const HostFunction>;

// A path becomes the contents of the file.
HostFunctionPtr read_file();
// The contents of a file become pixels (decoded_image).
HostFunctionPtr decode_image(const ImageLimits& limits);
// Images [..., rows, columns, channels] of uint8 or float32 become those of other rows and columns.
HostFunctionPtr resize_bilinear(std::int64_t rows, std::int64_t columns);

}  // namespace samegrad
