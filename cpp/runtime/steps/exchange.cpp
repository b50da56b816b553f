// Collectives that are made of the operands of all replicas, those of other processes included:
// results that join them, and parts of a sum over them.
#include "ops/attributes.h"
#include "runtime/executor.h"
#include "runtime/tree.h"

namespace samegrad {
namespace {

class ExchangeRun {
 public:
  ExchangeRun(const Plan& plan, const Node& node, const ExecuteParams& call,
              ExecutionContext& context)
      : plan_(plan), node_(node), call_(call), context_(context) {}

  void run() {
    const Counts& counts = call_.counts_of_world();
    const bool differs = plan_.graph.varying(node_.outputs[0]);
    std::vector<std::vector<View>> in, out;
    if (node_.op->linearity == Linearity::kSum) {
      in = {{sum()}};
    } else {
      for (std::size_t w = 0; w < counts.size(); ++w) in.push_back(views_of(node_.inputs, w));
      if (call_.communicator) receive(in);
    }
    for (std::size_t w = 0; differs && w < counts.size(); ++w) {
      out.push_back(views_of(node_.outputs, w));
    }
    if (!differs) out.push_back(views_of(node_.outputs, std::size_t(call_.first_replica())));
    node_.op->exchange.run({node_.attrs, in, out});
    if (differs && !call_.halo.empty()) give_halo(in, std::move(out));
  }

 private:
  // On a replica of the world; without memory where it is another process's.
  std::vector<View> views_of(const std::vector<Value>& values, std::size_t replica) const {
    const int local = int(replica) - call_.first_replica();
    const bool is_here = local >= 0 && local < context_.own_replicas();
    std::vector<View> views;
    for (Value value : values) {
      const Counts& counts = call_.counts_of_world();
      views.push_back(view_on(value, counts[replica], is_here ? local : -1));
    }
    return views;
  }

  View view_on(Value value, const std::vector<std::int64_t>& counts, int local) const {
    const ValueType& type = plan_.graph.type(value);
    std::byte* data = local < 0 ? nullptr : context_.base(local, plan_.root[value]);
    return view_of(type, concrete_shape(type, counts), data);
  }

  static std::int64_t bytes_of(const View& view) {
    return view.size() * std::int64_t(size_of(view.dtype));
  }

  // The first rows of the following replicas, whose parts begin where those of this process end.
  void give_halo(const std::vector<std::vector<View>>& in, std::vector<std::vector<View>> out) {
    if (plan_.graph.placement(node_.outputs[0]) != Placement::kSharded) return;
    const auto end = std::size_t(call_.first_replica()) + std::size_t(context_.own_replicas());
    out.resize(end);
    for (std::vector<View>& views : out) {
      for (View& view : views) view.data = nullptr;
    }
    out.emplace_back();
    for (Value value : node_.outputs) {
      out.back().push_back(view_on(value, call_.halo, context_.own_replicas()));
    }
    node_.op->exchange.run({node_.attrs, in, out});
  }

  // Sums the first operand over all replicas.
  View sum() {
    const Value root = plan_.root[node_.inputs[0]];
    const View like = view_on(node_.inputs[0], call_.counts[0], 0);
    const bool joint = context_.is_joint_sum(root);
    std::vector<std::byte*> terms;
    for (std::int64_t i = 0; i < context_.terms(root); ++i) {
      terms.push_back(context_.term(root, i));
    }
    View sum = like;
    sum.data = received_.emplace_back(std::size_t(bytes_of(like))).data();
    Scratch& scratch = context_.main_task().scratch;
    const Scratch::Frame frame(scratch);
    if (!call_.communicator) {
      const std::vector<const std::byte*> x(terms.begin(), terms.end());
      sum_of_replicas(x, like.dtype, like.size(), sum.as<std::byte>(), scratch);
      return sum;
    }
    const WorldTree& tree = context_.tree_of(node_.inputs[0]);
    const std::vector<std::byte*> all = all_terms(tree, terms, joint, bytes_of(like));
    std::vector<const std::byte*> x;
    for (std::size_t t = 0, next = 0; t < tree.all().size(); ++t) {
      const TreeRange range = tree.all()[t].range;
      const std::size_t count = joint ? 1 : std::size_t(range.size());
      const std::vector<const std::byte*> of(all.begin() + std::ptrdiff_t(next),
                                             all.begin() + std::ptrdiff_t(next + count));
      x.push_back(sum_of_replicas(of, like.dtype, like.size(), scratch));
      next += count;
    }
    tree.add(like.dtype, x, like.size(), sum.as<std::byte>());
    return sum;
  }

  // The terms of all processes, one after the other.
  std::vector<std::byte*> all_terms(const WorldTree& tree, const std::vector<std::byte*>& own,
                                    bool joint, std::int64_t bytes) {
    Communicator& world = *call_.communicator;
    std::vector<std::byte*> all;
    std::vector<Message> sends, receives;
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) {
        all.insert(all.end(), own.begin(), own.end());
        continue;
      }
      for (std::byte* term : own) {
        if (bytes > 0) sends.push_back({rank, term, bytes});
      }
      const std::int64_t theirs = joint ? tree.subtrees_of(rank) : tree.range_of(rank).size();
      for (std::int64_t i = 0; i < theirs; ++i) {
        all.push_back(received_.emplace_back(std::size_t(bytes)).data());
        if (bytes > 0) receives.push_back({rank, all.back(), bytes});
      }
    }
    world.exchange(sends, receives);
    return all;
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

  // Calls f for the operands of a replica that are read and not empty.
  template <class F>
  void for_operands(std::vector<std::vector<View>>& in, int replica, const F& f) const {
    if (node_.op->exchange.first_only && replica > 0) return;
    std::vector<View>& views = in[std::size_t(replica)];
    for (std::size_t k = 0; k < views.size(); ++k) {
      if (node_.op->reads(k) && views[k].size() > 0) f(views[k]);
    }
  }

  const Plan& plan_;
  const Node& node_;
  const ExecuteParams& call_;
  ExecutionContext& context_;
  std::vector<PooledBuffer> received_;
};

}  // namespace

void exchange(const Plan& plan, const Node& node, const ExecuteParams& call,
              ExecutionContext& context) {
  ExchangeRun(plan, node, call, context).run();
}

}  // namespace samegrad
