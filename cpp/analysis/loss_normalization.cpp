#include "analysis/loss_normalization.h"

#include <algorithm>

#include "analysis/count_powers.h"

namespace samegrad {
namespace {

using Kind = NormalizationMistake::Kind;

constexpr CountPowers kShareOfMean{.local = 1, .global = -1, .replicas = 0};

bool is_share_of_mean(const CountTerm& term) {
  return term.data && term.varying && !term.ambiguous && term.powers == kShareOfMean;
}

class NormalizationCheck {
 public:
  explicit NormalizationCheck(const Graph& graph) : graph_(graph), walk_(graph) {}

  void judge(const ValueUse& use, bool optimized) {
    const CountTerms& terms = walk_.of(use.value);
    const bool gradient = use.kind == ValueUse::Kind::kGradient;
    // A value that an optimizer assigns was judged as a gradient.
    if (!gradient && optimized) return;
    if (terms.nonlinear.exists()) report_at(Kind::kNonlinearShare, terms.nonlinear);
    const bool data = std::any_of(terms.terms.begin(), terms.terms.end(),
                                  [](const CountTerm& term) { return term.data; });
    for (const CountTerm& term : terms.terms) {
      if (data && terms.known) judge_summed(term, gradient);
    }
  }

  // The mean over replicas of shares leaves the program.
  void judge_result(Value value) {
    const CountTerms& terms = walk_.of(value);
    for (const CountTerm& term : terms.terms) {
      if (terms.known) judge_average(term);
    }
  }

  bool is_share(Value value) const {
    const CountTerms& terms = walk_.of(value);
    return terms.known && terms.terms.size() == 1 && is_share_of_mean(terms.terms[0]);
  }

  std::vector<NormalizationMistake> found() && { return std::move(found_); }

 private:
  // A term of the sum over replicas.
  void judge_summed(const CountTerm& term, bool gradient) {
    if (term.ambiguous) return;
    if (!term.data) {
      // In the gradient of a local mean such a term (a bias) is reported with the whole gradient.
      if (term.variable && !term.means && term.powers.replicas == 1) {
        report_at(Kind::kRegularization, walk_.added_to_share());
      }
    } else if (term.means && term.powers.replicas == 1) {
      const bool penalty = gradient && term.order == 2;
      report_at(penalty ? Kind::kPenalty : Kind::kMeanThenSum, term.origin);
    } else if (term.powers.replicas == 1 && (term.repeated || term.powers.global == 0)) {
      report_at(Kind::kTimesReplicas, term.origin);
    } else {
      judge_average(term);
    }
  }

  void judge_average(const CountTerm& term) {
    const bool divided_twice = term.data && !term.varying && !term.ambiguous && !term.means &&
                               term.powers == CountPowers{.local = 0, .global = 0, .replicas = -1};
    if (divided_twice) report_at(Kind::kShareThenMean, term.origin);
  }

  void report_at(Kind kind, NodeId node) {
    report(kind, node.exists() ? graph_.nodes[node].location : -1);
  }

  void report(Kind kind, std::int32_t location) {
    NormalizationMistake mistake{kind, location < 0 ? "" : graph_.locations[std::size_t(location)]};
    if (std::find(found_.begin(), found_.end(), mistake) == found_.end()) {
      found_.push_back(std::move(mistake));
    }
  }

  const Graph& graph_;
  CountWalk walk_;
  std::vector<NormalizationMistake> found_;
};

// A literal that may be the number of replicas (0.5 on two of them) is taken for a mere factor: a
// loss must not depend on how many there are. A term of variables alone that varies was summed
// over the examples (the bias of a layer): it is scaled like those of the data.
LossNormalization scale_of(const CountTerm& term) {
  if (!term.varying) {
    constexpr CountPowers kPart{.local = 0, .global = 0, .replicas = -1};
    return term.powers == CountPowers{} ? LossNormalization::kCommon
           : term.powers == kPart       ? LossNormalization::kShare
                                        : LossNormalization::kUnknown;
  }
  if (term.powers == kShareOfMean) return LossNormalization::kShare;
  const bool times = term.powers == CountPowers{.local = 1, .global = -1, .replicas = 1};
  if (times) return LossNormalization::kTimesReplicas;
  return term.powers == CountPowers{} ? LossNormalization::kMean : LossNormalization::kUnknown;
}

// True if the term depends on variables alone and is equal on all replicas.
bool is_penalty(const CountTerm& term) {
  return !term.data && !term.varying && term.powers == CountPowers{};
}

bool counts_examples(const CountTerms& terms) {
  return std::any_of(terms.terms.begin(), terms.terms.end(),
                     [](const CountTerm& term) { return term.powers.local != 0; });
}

// True if a factor is one over a sum of data, such as a sum of weights. A replica's fraction of
// such a sum differs from its fraction of the examples.
bool divides_by_data(const CountTerms& factor, bool divisor) {
  const int sign = divisor ? -1 : 1;
  return std::any_of(factor.terms.begin(), factor.terms.end(), [&](const CountTerm& term) {
    return term.data && sign * term.powers.local < 0;
  });
}

// True if the value was divided by a sum of data anywhere, before or after a sum over the examples.
bool is_divided_by_data(const Graph& graph, const CountWalk& walk, Value value) {
  Values open{value};
  PerValue<char> seen(graph.values.size(), false);
  while (!open.empty()) {
    const Value next = open.back();
    open.pop_back();
    const ValueInfo& info = graph.values[next];
    if (info.source != Source::kNode || seen[next]) continue;
    seen[next] = true;
    const Node& node = graph.nodes[info.node()];
    const Linearity rule = node.op->linearity;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.op->scales(k)) continue;
      const Value part = node.inputs[k];
      const bool factor = rule == Linearity::kProduct || rule == Linearity::kQuotient;
      const bool divisor = rule == Linearity::kQuotient && k == 1;
      if (factor && !graph.values[part].type.batched() && divides_by_data(walk.of(part), divisor)) {
        return true;
      }
      if (!divisor && graph.varying(part)) open.push_back(part);
    }
  }
  return false;
}

// True if a value without its own count is linear in a sum over examples divided by a count. Powers
// alone do not distinguish a mean from its square root, or from the maximum over the examples.
bool is_linear_in_mean(const Graph& graph, const CountWalk& walk, Value value) {
  const ValueInfo& info = graph.values[value];
  if (info.source != Source::kNode || info.type.batched()) return false;
  const Node& node = graph.nodes[info.node()];
  const Linearity rule = node.op->linearity;
  if (rule != Linearity::kSum && rule != Linearity::kProduct && rule != Linearity::kQuotient) {
    return false;
  }
  Values parts;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!node.op->scales(k)) continue;
    const Value part = node.inputs[k];
    if (counts_examples(walk.of(part))) return true;
    if (graph.varying(part)) parts.push_back(part);
  }
  if (parts.empty() || (rule != Linearity::kSum && parts.size() > 1)) return false;
  return std::all_of(parts.begin(), parts.end(),
                     [&](Value part) { return is_linear_in_mean(graph, walk, part); });
}

}  // namespace

LossNormalization loss_normalization(const Graph& graph, Value value) {
  const CountWalk walk(graph);
  const CountTerms& terms = walk.of(value);
  if (!terms.known || terms.nonlinear.exists()) return LossNormalization::kUnknown;
  if (terms.terms.empty()) return LossNormalization::kCommon;
  LossNormalization found = scale_of(terms.terms[0]);
  for (const CountTerm& term : terms.terms) {
    const LossNormalization next = scale_of(term);
    if (next == found || (found == LossNormalization::kMean && is_penalty(term))) continue;
    // A mean and a penalty of the variables: weighed by its examples, each replica has its part of
    // both.
    const bool both = next == LossNormalization::kMean && found == LossNormalization::kCommon &&
                      std::all_of(terms.terms.data(), &term, is_penalty);
    if (!both) return LossNormalization::kUnknown;
    found = next;
  }
  const bool mean =
      is_linear_in_mean(graph, walk, value) && !is_divided_by_data(graph, walk, value);
  return found == LossNormalization::kMean && !mean ? LossNormalization::kUnknown : found;
}

NormalizationReport check_loss_normalization(const Graph& graph, const std::vector<Value>& results,
                                             const std::vector<ValueUse>& uses) {
  NormalizationReport report;
  report.shares.assign(results.size(), false);
  if (graph.replicas == 1) return report;
  NormalizationCheck judge(graph);
  const bool optimized = std::any_of(uses.begin(), uses.end(), [](const ValueUse& use) {
    return use.kind == ValueUse::Kind::kGradient;
  });
  for (const ValueUse& use : uses) judge.judge(use, optimized);
  for (std::size_t i = 0; i < results.size(); ++i) {
    judge.judge_result(results[i]);
    report.shares[i] = judge.is_share(results[i]);
  }
  report.mistakes = std::move(judge).found();
  return report;
}

}  // namespace samegrad
