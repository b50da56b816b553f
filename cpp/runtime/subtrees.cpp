#include "runtime/subtrees.h"

namespace samegrad {
namespace {

void find_subtrees(ReplicaRange tree, ReplicaRange within, std::vector<ReplicaRange>& found) {
  if (tree.end <= within.begin || within.end <= tree.begin) return;
  if (within.begin <= tree.begin && tree.end <= within.end) {
    found.push_back(tree);
    return;
  }
  const int middle = tree.begin + int(tree_split(tree.end - tree.begin));
  find_subtrees({tree.begin, middle}, within, found);
  find_subtrees({middle, tree.end}, within, found);
}

}  // namespace

std::vector<ReplicaRange> maximal_subtrees(int replicas, ReplicaRange within) {
  std::vector<ReplicaRange> found;
  if (within.begin < within.end) find_subtrees({0, replicas}, within, found);
  return found;
}

}  // namespace samegrad
