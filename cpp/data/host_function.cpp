#include "data/host_function.h"

#include "data/read_file.h"
#include "data/resize.h"

namespace samegrad {
namespace {

class ReadFile final : public HostFunction {
 public:
  std::optional<HostValue> operator()(const HostValue& value) const override {
    const auto* path = std::get_if<std::string>(&value);
    if (!path || path->find("://") != std::string::npos) return std::nullopt;
    return read_whole_file(*path);
  }
};

class DecodeImage final : public HostFunction {
 public:
  explicit DecodeImage(const ImageLimits& limits) : limits_(limits) {}
  std::optional<HostValue> operator()(const HostValue& value) const override {
    const auto* file = std::get_if<std::string>(&value);
    if (!file) return std::nullopt;
    return decoded_image({reinterpret_cast<const std::uint8_t*>(file->data()), file->size()},
                         limits_);
  }

 private:
  ImageLimits limits_;
};

class ResizeBilinear final : public HostFunction {
 public:
  ResizeBilinear(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}
  std::optional<HostValue> operator()(const HostValue& value) const override {
    const auto* images = std::get_if<Array>(&value);
    if (!images || !has_images(*images)) return std::nullopt;
    if (images->shape().rank() > 4 || images->size() == 0) return std::nullopt;
    return resized_bilinear(*images, rows_, columns_);
  }

 private:
  std::int64_t rows_, columns_;
};

}  // namespace

HostFunctionPtr read_file() {
  return std::make_shared<ReadFile>();
}

HostFunctionPtr decode_image(const ImageLimits& limits) {
  return std::make_shared<DecodeImage>(limits);
}

HostFunctionPtr resize_bilinear(std::int64_t rows, std::int64_t columns) {
  return std::make_shared<ResizeBilinear>(rows, columns);
}

}  // namespace samegrad
