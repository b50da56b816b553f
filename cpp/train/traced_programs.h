// The traces of a function whose arguments have lengths, and the programs specialized to the
// lengths of a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/program.h"

namespace samegrad {

// One trace of a function, or one for each group of replicas whose counts decide alike.
class TracedPrograms {
 public:
  TracedPrograms(std::vector<Program> programs, std::vector<std::string> split_at)
      : programs_(std::move(programs)), split_at_(std::move(split_at)) {}

  // True if sizes of arguments are lengths, so that each length has its own program.
  bool has_lengths() const;
  // The program of the arguments; absent where the traces took other lengths, or counts of
  // examples, for granted. ValueError where an operation is not possible with these lengths.
  std::optional<Program> program_of(const std::vector<PerReplica<Array>>& arguments) const;
  // The program of all arguments, where there are no lengths; it can be taken once.
  Program take();
  // The only one. ValueError where replicas have one each.
  const Program& only() const;
  // The guards of the traces on lengths and their lines: one string for each.
  std::vector<std::string> granted() const;

 private:
  std::vector<Program> programs_;
  std::vector<std::string> split_at_;
};

}  // namespace samegrad
