// Shape and dtype rules that op families share. Each rule carries the example axis along.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/op_def.h"

namespace samegrad {

// TypeError unless the operand's dtype is one of the set.
void check_dtype(const InferArgs& args, int operand, DTypes allowed);
// TypeError unless the operands first … last have one dtype.
void check_same_dtype(const InferArgs& args, int first, int last);
// ValueError unless the operand has at least this many axes.
void check_min_rank(const InferArgs& args, int operand, int rank);

Size size_along(const InferArgs& args, const ValueType& type, int axis);
// True if two sizes are equal. Where that depends on the counts, those of the trace decide, and the
// program is bound to them; ValueError if they decide differently on different replicas.
bool same_size(const InferArgs& args, const Size& a, const Size& b);
// True if the sizes of all axes are equal, by same_size().
bool same_shape(const InferArgs& args, const ValueType& a, const ValueType& b);
// The size as a number, which binds the program to the counts of the trace; ValueError if it is
// another one on other replicas.
std::int64_t fixed_size(const InferArgs& args, const Size& size);
// The operand as a value without example axis, whose rows are as many as before: for results that
// do not keep the examples together.
ValueType ordinary_type(const InferArgs& args, const ValueType& type);

// The locality where each example of the results is a function of the same example of the operands:
// kPerExample or kInnerExample, by the axes; kFullBatch if a result has no examples.
Locality per_example(std::span<const ValueType> in, std::span<const ValueType> out);
// True if all operands have the same examples on one axis, which is before `end`.
bool has_aligned_examples(const InferArgs& args, int end);
// One result, computed example by example.
Inferred one_result(const InferArgs& args, const ValueType& type);

// The result has the type of operand 0.
Inferred same_as_input(const InferArgs& args);

// The shape and example axis to which all operands broadcast, as in NumPy; ValueError if they do
// not. Examples broadcast with examples of the same symbol, sizes of 1, and their own number. If
// the trace saw equal sizes, they broadcast with any other size as well (the count is then fixed).
Inferred broadcast_rule(const InferArgs& args, DType result);

// "float32 and int32", "(2, 3), (4,) and ()": for messages.
std::string dtypes_of_operands(const InferArgs& args, int first, int last);
std::string shapes_of_operands(const InferArgs& args);

}  // namespace samegrad
