#include "kernels/elementwise.h"

#include "kernels/with_type.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

UnaryKernel unary_kernel(UnaryFn fn, DType dtype) {
  return with_type(dtype, [fn]<class T>() { return unary_of<T>(fn); });
}

BinaryKernel binary_kernel(BinaryFn fn, DType dtype) {
  return with_type(dtype, [fn]<class T>() { return binary_of<T>(fn); });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
