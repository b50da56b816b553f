#include "analysis/scaling.h"

#include <algorithm>

#include "analysis/count_powers.h"

namespace samegrad {
namespace {

using Kind = ScalingMistake::Kind;

bool is_share_of_mean(const CountTerm& term) {
  return term.data && term.varying && !term.ambiguous &&
         term.powers == CountPowers{.local = 1, .global = -1, .replicas = 0};
}

class Judge {
 public:
  explicit Judge(const Graph& graph) : graph_(graph), walk_(graph) {}

  void judge(const ValueUse& use, bool optimized) {
    const CountTerms& terms = walk_.of(use.value);
    if (use.kind == ValueUse::Kind::kMean) {
      if (terms.known && terms.terms.size() == 1 && is_share_of_mean(terms.terms[0])) {
        report(Kind::kShareInMeanMetric, use.location);
      }
      return;
    }
    const bool gradient = use.kind == ValueUse::Kind::kGradient;
    // What an optimizer assigns was judged as a gradient.
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

  std::vector<ScalingMistake> found() && { return std::move(found_); }

 private:
  // A term of the sum over replicas.
  void judge_summed(const CountTerm& term, bool gradient) {
    if (term.ambiguous) return;
    if (!term.data) {
      if (term.variable && term.powers.replicas == 1) {
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
    ScalingMistake mistake{kind, location < 0 ? "" : graph_.locations[std::size_t(location)]};
    if (std::find(found_.begin(), found_.end(), mistake) == found_.end()) {
      found_.push_back(std::move(mistake));
    }
  }

  const Graph& graph_;
  CountWalk walk_;
  std::vector<ScalingMistake> found_;
};

}  // namespace

ScalingReport check_scaling(const Graph& graph, const std::vector<Value>& results,
                            const std::vector<ValueUse>& uses) {
  ScalingReport report;
  report.shares.assign(results.size(), false);
  if (graph.replicas == 1) return report;
  Judge judge(graph);
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
