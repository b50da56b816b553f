// Follows the counts that a traced program multiplies and divides by, and finds the mistakes of
// loss normalization before anything runs.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// A use of a value that a rule of loss normalization depends on.
struct ValueUse {
  enum class Kind : std::uint8_t {
    kGradient,   // summed over the replicas, for an optimizer
    kAssignment  // the new value of a variable that is trained
  } kind;
  Value value;
  std::int32_t location;  // index of the graph's locations
};

struct NormalizationMistake {
  enum class Kind : std::uint8_t {
    kMeanThenSum,     // a local mean is summed over the replicas
    kShareThenMean,   // a share of the global mean is averaged over the replicas
    kTimesReplicas,   // a factor of their number, or of a loss that was summed before
    kRegularization,  // a term of the variables alone counts on each replica
    kPenalty,         // a term of gradients (of second order) is averaged locally
    kNonlinearShare   // a function of a replica's share of a sum
  } kind;
  std::string location;  // "train.py:31", empty where it is not known
  bool operator==(const NormalizationMistake&) const = default;
};

struct NormalizationReport {
  std::vector<NormalizationMistake> mistakes;  // in the order of the uses, each once
  // True for each result of the program that is a replica's share of the global mean.
  std::vector<bool> shares;
};

// The meaning of a scalar once it is summed over the replicas.
enum class LossNormalization : std::uint8_t {
  kUnknown,        // nothing that is known
  kCommon,         // as many times the value as there are replicas: it is equal on all of them
  kShare,          // the mean over all examples
  kTimesReplicas,  // the mean over all examples, times the number of replicas
  kMean            // a sum of local means
};

// Returns how a scalar of a traced program is normalized, from the terms that the analysis knows.
LossNormalization loss_normalization(const Graph& graph, Value value);

// Silent where it cannot follow the program.
NormalizationReport check_loss_normalization(const Graph& graph, const std::vector<Value>& results,
                                             const std::vector<ValueUse>& uses);

}  // namespace samegrad
