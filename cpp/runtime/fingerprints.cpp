#include "runtime/fingerprints.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace samegrad {
namespace {

// "0, 2-5 and 9 others"
std::string listed(const std::vector<int>& ranks) {
  std::string out;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < ranks.size(); ++shown) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (shown == kMaxShown) return out + text(" and ", ranks.size() - i, " others");
    out += text(i ? ", " : "", ranks[i]);
    if (end - i > 1) out += text("-", ranks[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace

std::string joined(const std::vector<Fingerprint>& facts) {
  std::string all;
  for (const Fingerprint& fact : facts) all += fact.name + '\x1f' + fact.value + '\x1e';
  return all;
}

std::vector<Fingerprint> separated(std::string_view all) {
  std::vector<Fingerprint> facts;
  while (!all.empty()) {
    const std::size_t middle = all.find('\x1f'), end = all.find('\x1e');
    facts.push_back({std::string(all.substr(0, middle)),
                     std::string(all.substr(middle + 1, end - middle - 1))});
    all.remove_prefix(end + 1);
  }
  return facts;
}

std::string difference(const std::vector<std::vector<Fingerprint>>& of_ranks) {
  std::map<std::string, std::map<std::string, std::vector<int>>> found;
  std::vector<std::string> names;
  for (const auto& facts : of_ranks) {
    for (const Fingerprint& fact : facts) {
      if (found.try_emplace(fact.name).second) names.push_back(fact.name);
    }
  }
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const std::string& name : names) {
      const auto fact = std::ranges::find(of_ranks[rank], name, &Fingerprint::name);
      const bool there = fact != of_ranks[rank].end();
      found[name][there ? fact->value : "none"].push_back(int(rank));
    }
  }
  std::string out;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (found[name].size() < 2) continue;
    if (shown++ == kMaxShown) return out + "; and more";
    out += (out.empty() ? "" : "; ") + name + ": ";
    std::string values;
    for (const auto& [value, ranks] : found[name]) {
      values += text(values.empty() ? "" : ", ", value,
                     ranks.size() > 1 ? " on ranks " : " on rank ", listed(ranks));
    }
    out += values;
  }
  return out;
}

std::string remedy(const std::string& difference) {
  if (difference.starts_with("build: ")) return "install one build of samegrad for all of them.";
  return "give all ranks the same program, seed, data and settings, or broadcast_variables first.";
}

}  // namespace samegrad
