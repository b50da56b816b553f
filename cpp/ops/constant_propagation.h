// Constant propagation for elementwise ops: a value is unknown, a splat of one scalar, or bitwise
// equal to another value. It shows which updates leave a variable as it is where the gradient is
// zero, whatever the optimizer. For instance, w - 0 is w, also if w is -0, infinite or NaN; w + 0
// is not, as -0 becomes 0. A number that is not known yet is assumed to change nothing where it is
// added, or to be the condition that keeps a value. The assumption is checked when the number is
// known.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/op_def.h"

namespace samegrad {

struct LatticeValue {
  // kSome: a number, but not which.
  enum Kind : std::uint8_t { kNothing, kSame, kNumber, kSome } kind = kNothing;
  int same = -1;                                        // kSame: as which value
  std::array<std::byte, kMaxElementBytes> number = {};  // kNumber

  static LatticeValue same_as(int value) { return {kSame, value, {}}; }
  static LatticeValue some_number() { return {kSome, -1, {}}; }
  // kNumber.
  const std::byte* bytes() const {
    SG_ASSERT(kind == kNumber, "kind ", int(kind));
    return number.data();
  }
  bool is_scalar() const { return kind == kNumber || kind == kSome; }
  // The number at an address.
  static LatticeValue number_at(const void* at, DType dtype);
  // A number that the dtype has.
  static LatticeValue number_of(double number, DType dtype);
  bool operator==(const LatticeValue&) const = default;
};

// Nodes that run one after the other. Registers hold what is known of their operands and results.
class LatticeProgram {
 public:
  // A register for a value that no node makes.
  int add_operand() { return registers_++; }
  // True if the node can be followed. add() returns the registers of its results.
  static bool takes(const Node& node);
  std::vector<int> add(const Graph& graph, const Node& node, std::span<const int> operands);

  int registers() const { return registers_; }
  // Fills the registers of the results. Allocates nothing.
  void run(std::span<LatticeValue> registers) const;

 private:
  struct Step {
    const OpDef* by_row = nullptr;  // else block
    BlockFn block = {};
    DType dtype = DType::kFloat32;  // of the last operand
    DType result = DType::kFloat32;
    std::array<int, 3> in = {-1, -1, -1};
    int out = -1;
  };
  static LatticeValue follow(const Step& step, std::span<const LatticeValue> registers);

  std::vector<Step> steps_;
  int registers_ = 0;
};

}  // namespace samegrad
