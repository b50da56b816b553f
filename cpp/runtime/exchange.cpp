// Collectives that are not sums: a row's results are made of the operands of all replicas, those of
// other processes included.
#include "runtime/executor.h"

namespace samegrad {
namespace {

class Exchange {
 public:
  Exchange(const Plan& plan, const Node& node, const Call& call, Context& context)
      : plan_(plan), node_(node), call_(call), context_(context) {}

  void run() {
    std::vector<std::vector<View>> in, out;
    const Counts& counts = call_.counts_of_world();
    const bool differs = plan_.graph.varying(node_.outputs[0]);
    for (std::size_t w = 0; w < counts.size(); ++w) {
      in.push_back(views_of(node_.inputs, w));
      if (differs) out.push_back(views_of(node_.outputs, w));
    }
    if (!differs) out.push_back(views_of(node_.outputs, std::size_t(call_.first_replica())));
    if (call_.communicator) receive(in);
    node_.op->exchange({node_.attrs, in, out});
  }

 private:
  // On a replica of the world; without memory where it is another process's.
  std::vector<View> views_of(const std::vector<Value>& values, std::size_t replica) const {
    const int local = int(replica) - call_.first_replica();
    const bool is_here = local >= 0 && local < context_.own_replicas();
    std::vector<View> views;
    for (Value value : values) {
      const ValueType& type = plan_.graph.type(value);
      const Shape shape = concrete_shape(type, call_.counts_of_world()[replica]);
      std::byte* data = is_here ? context_.base(local, plan_.root[value]) : nullptr;
      views.push_back(view_of(type, shape, data));
    }
    return views;
  }

  static std::int64_t bytes_of(const View& view) {
    return view.size() * std::int64_t(size_of(view.dtype));
  }

  // Operands of the other processes.
  void receive(std::vector<std::vector<View>>& in) {
    Communicator& world = *call_.communicator;
    std::vector<Message> sends, receives;
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) continue;
      for (int w = world.own().begin; w < world.own().end; ++w) {
        for_operands(in, w, [&](View& view) {
          sends.push_back({rank, static_cast<std::byte*>(view.data), bytes_of(view)});
        });
      }
      const ReplicaRange theirs = world.replicas_of(rank);
      for (int w = theirs.begin; w < theirs.end; ++w) {
        for_operands(in, w, [&](View& view) {
          received_.emplace_back(std::size_t(bytes_of(view)));
          view.data = received_.back().data();
          receives.push_back({rank, received_.back().data(), bytes_of(view)});
        });
      }
    }
    world.exchange(sends, receives);
  }

  // Those of a replica that are read and not empty.
  template <class F>
  void for_operands(std::vector<std::vector<View>>& in, int replica, const F& f) const {
    if (node_.op->exchanges_first && replica > 0) return;
    std::vector<View>& views = in[std::size_t(replica)];
    for (std::size_t k = 0; k < views.size(); ++k) {
      if (node_.op->reads(k) && views[k].size() > 0) f(views[k]);
    }
  }

  const Plan& plan_;
  const Node& node_;
  const Call& call_;
  Context& context_;
  std::vector<Leased> received_;
};

}  // namespace

void exchange(const Plan& plan, const Node& node, const Call& call, Context& context) {
  Exchange(plan, node, call, context).run();
}

}  // namespace samegrad
