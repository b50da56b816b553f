#include "train/collective_fingerprint.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/hasher.h"
#include "base/machine.h"
#include "runtime/world_sums.h"

namespace samegrad {
namespace {

constexpr std::size_t kShownReplicas = 64;

std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

// "a step with train.py:31"
std::string where(const Locations& lines) {
  const auto line = std::ranges::find_if(lines, [](const std::string& l) { return !l.empty(); });
  return line == lines.end() ? "a step" : "a step with " + *line;
}

// "4, 4, 3", of the first symbol of examples.
std::string examples(const Counts& counts) {
  std::string all;
  for (const std::vector<std::int64_t>& replica : counts) {
    if (replica.empty()) return "none";
    all += (all.empty() ? "" : ", ") + std::to_string(replica[0]);
  }
  if (counts.size() <= kShownReplicas) return all;
  Hasher hasher;
  hasher.bytes(all.data(), all.size());
  return "hash " + hexadecimal(hasher.state());
}

std::uint64_t hash_of_all(const Counts& counts) {
  Hasher hasher;
  for (const std::vector<std::int64_t>& replica : counts) {
    for (const std::int64_t count : replica) hasher.number(count);
  }
  return hasher.state();
}

// Equal programs may have been given other variables, or in another order.
std::string which_variables(const ExecuteParams& call) {
  Hasher hasher;
  for (const std::shared_ptr<StateCell>& variable : call.variables) {
    hasher.number(variable->compared);
  }
  return hexadecimal(hasher.state());
}

// A rank with a variable in common memory waits for the other ranks' parts of its update.
std::string variables_in_common(const ExecuteParams& call) {
  Hasher hasher;
  for (const std::shared_ptr<StateCell>& variable : call.variables) {
    hasher.number(variable->common ? 1 : 0);
  }
  return hexadecimal(hasher.state());
}

// The settings by which the engine divides sums into messages. Bits do not depend on them, but a
// rank with others would wait for messages of other sizes.
void add_machine(std::vector<Fingerprint>& facts) {
  const Machine& own = machine();
  facts.push_back({"caches (SAMEGRAD_MACHINE)", text("l1=", own.l1, ",l2=", own.l2)});
  const char* forced = std::getenv("SAMEGRAD_THRESHOLDS");
  facts.push_back({"SAMEGRAD_THRESHOLDS", forced ? forced : "none"});
}

}  // namespace

std::uint64_t fingerprint_of(const Graph& program) {
  Hasher hasher;
  hasher.number(hash_of(program));
  for (const Array& constant : program.constants) {
    if (constant.defined() && constant.bytes()) hasher.bytes(constant.raw(), constant.bytes());
  }
  return hasher.state();
}

std::uint64_t fingerprint_of(const Plan& plan) {
  Hasher hasher;
  hasher.number(fingerprint_of(plan.graph));
  for (const PlanStep& step : plan.steps) {
    hasher.number(int(step.kind().index()));
    for (const NodeId node : step.nodes()) hasher.number(node.number());
  }
  return hasher.state();
}

std::vector<Fingerprint> facts_of(const CompiledFunction& step, const ExecuteParams& call,
                                  std::uint64_t fingerprint) {
  const Counts& counts = call.world_counts;
  std::vector<Fingerprint> facts = {
      {"call", where(step.binding().locations)},
      {"program", hexadecimal(fingerprint)},
      {"seed", std::to_string(call.seed)},
      {"number of the random step", std::to_string(call.step)},
      {"examples per replica", examples(counts)},
      {"sizes", hexadecimal(hash_of_all(counts))},
      {"looks for NaN", call.check_finite ? "yes" : "no"},
      {"is recorded", call.hashes ? "yes" : "no"},
      {"sums travel as", sums_as_bfloat16() ? "bfloat16" : "they are"}};
  facts.push_back({"variables in common memory", variables_in_common(call)});
  ComparedFacts& compared = call.communicator->compared();
  bool first = false;
  for (std::size_t v = 0; v < call.variables.size(); ++v) {
    StateCell& variable = *call.variables[v];
    if (variable.compared) continue;
    variable.compared = ++compared.variables;
    first = true;
    // One that has a component per replica differs.
    if (step.program().variables[SlotId(v)].components > 1) continue;
    const Array& value = variable.components()[0];
    Hasher hasher;
    hasher.many(value.raw(), value.bytes());
    facts.push_back({"variable " + step.binding().names[v], hexadecimal(hasher.state())});
  }
  facts.push_back({"which variables, in which order", which_variables(call)});
  // Also where no step has variables.
  if (compared.has_build.exchange(true) && !first) return facts;
  facts.insert(facts.end(), compared.build.begin(), compared.build.end());
  add_machine(facts);
  return facts;
}

ComparedFingerprints::ComparedFingerprints(const ExecuteParams& call)
    : call_(call),
      variables_(call.communicator->compared().variables),
      build_(call.communicator->compared().has_build) {}

void ComparedFingerprints::take_back() const {
  for (const std::shared_ptr<StateCell>& variable : call_.variables) {
    if (variable->compared > variables_) variable->compared = 0;
  }
  ComparedFacts& compared = call_.communicator->compared();
  compared.variables = variables_;
  compared.has_build = build_;
}

}  // namespace samegrad
