#include "runtime/execute_params.h"

#include <algorithm>

#include "base/error.h"

namespace samegrad {

void ExecuteParams::set_counts(Counts of_world) {
  world_counts = std::move(of_world);
  const auto own = communicator->own();
  counts = {world_counts.begin() + own.begin, world_counts.begin() + own.end};
  if (!halo.empty()) counts.push_back(halo);
}

void check_world(const Graph& graph, const ExecuteParams& call) {
  const Communicator& world = *call.communicator;
  const int own = world.own().end - world.own().begin;
  SG_CHECK_VALUE(own > 0, "step", "each process needs a replica: rank ", world.rank(), " of ",
                 world.size(), " has none; start fewer processes, or use more replicas.");
  SG_CHECK_VALUE(std::int64_t(call.counts.size()) == own, "step", "rank ", world.rank(), " has ",
                 own, " of the world's replicas: got examples for ", call.counts.size(), ".");
  SG_CHECK_VALUE(graph.replicas == world.replicas(), "step", "the program was traced for ",
                 graph.replicas, " replicas: the world has ", world.replicas(),
                 "; trace it again.");
}

Counts gather_counts(const Graph& graph, const ExecuteParams& call) {
  const Communicator& world = *call.communicator;
  const std::size_t symbols = graph.symbols.size();
  std::vector<std::int64_t> all(symbols * std::size_t(world.replicas()));
  const auto row = [&](int replica) { return all.data() + std::size_t(replica) * symbols; };
  const auto rows_of = [&](int rank, int other) {
    const ReplicaRange range = world.replicas_of(rank);
    auto* data = reinterpret_cast<std::byte*>(row(range.begin));
    return Message{other, data, reinterpret_cast<std::byte*>(row(range.end)) - data};
  };
  for (std::size_t r = 0; r < call.counts.size(); ++r) {
    std::ranges::copy(call.counts[r], row(world.own().begin + int(r)));
  }
  std::vector<Message> sends, receives;
  for (int rank = 0; rank < world.size() && symbols > 0; ++rank) {
    if (rank == world.rank()) continue;
    sends.push_back(rows_of(world.rank(), rank));
    receives.push_back(rows_of(rank, rank));
  }
  call.communicator->exchange(sends, receives);
  Counts counts;
  for (int r = 0; r < world.replicas(); ++r) counts.emplace_back(row(r), row(r + 1));
  complete_counts(graph.symbols, counts);
  return counts;
}

}  // namespace samegrad
