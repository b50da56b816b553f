#include "kernels/elementwise.h"

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

UnaryKernel unary_kernel(UnaryFn fn, DType dtype) {
  return kernel_for(dtype, [fn]<class T>() { return unary_of<T>(fn); });
}

BinaryKernel binary_kernel(BinaryFn fn, DType dtype) {
  return kernel_for(dtype, [fn]<class T>() { return binary_of<T>(fn); });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
