#include "kernels/binary_table.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
template BinaryKernel binary_of<std::int32_t>(BinaryFn fn);
template BinaryKernel binary_of<std::int64_t>(BinaryFn fn);
template BinaryKernel binary_of<std::uint8_t>(BinaryFn fn);
template BinaryKernel binary_of<bool>(BinaryFn fn);
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
