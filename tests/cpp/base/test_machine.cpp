// The description of the machine, and the thresholds that follow from it.
#include "base/machine.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/thresholds.h"
#include "check.h"

using namespace samegrad;

namespace {

// A folder like /sys/devices/system/cpu/cpu0.
class System {
 public:
  System() {
    char path[] = "/tmp/samegrad_machine_XXXXXX";
    CHECK(mkdtemp(path) != nullptr);
    folder_ = path;
  }
  ~System() { std::filesystem::remove_all(folder_); }

  void siblings(const char* list) { write("topology/thread_siblings_list", list); }
  void cache(int index, const char* level, const char* type, const char* size,
             const char* sharers) {
    const std::string at = "cache/index" + std::to_string(index) + "/";
    write(at + "level", level);
    write(at + "type", type);
    write(at + "size", size);
    write(at + "shared_cpu_list", sharers);
  }
  Machine machine() const { return machine_of(folder_.string()); }

 private:
  void write(const std::string& name, const char* text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::filesystem::path folder_;
};

constexpr std::int64_t kKiB = 1 << 10;

}  // namespace

TEST("the caches of data are those that the system names") {
  System system;
  system.siblings("0-1");
  system.cache(0, "1", "Data", "48K", "0-1");
  system.cache(1, "1", "Instruction", "32K", "0-1");
  system.cache(2, "2", "Unified", "2048K", "0-1");
  system.cache(3, "3", "Unified", "36M", "0-15");
  CHECK(system.machine() == (Machine{48 * kKiB, 2048 * kKiB, 36 * 1024 * kKiB, 0}));
}

TEST("an L2 that four cores share counts a quarter for each") {
  System system;
  system.siblings("4");
  system.cache(2, "2", "Unified", "4M", "4-7");
  CHECK_EQ(system.machine().l2, 1024 * kKiB);
}

TEST("what the system does not say, or no machine has, is typical") {
  const Machine typical;
  CHECK(machine_of("/nowhere") == typical);
  System system;
  system.cache(0, "1", "Data", "0K", "0");
  system.cache(1, "2", "Unified", "1000G", "0");
  system.cache(2, "three", "Unified", "8M", "0");
  system.cache(3, "3", "Unified", "", "");
  CHECK(system.machine() == typical);
}

TEST("an L2 is never smaller than L1, nor L3 smaller than L2") {
  System system;
  system.cache(0, "1", "Data", "128K", "0");
  system.cache(1, "2", "Unified", "64K", "0");
  system.cache(2, "3", "Unified", "96K", "0");
  const Machine machine = system.machine();
  CHECK_EQ(machine.l2, 128 * kKiB);
  CHECK_EQ(machine.l3, 128 * kKiB);
}

TEST("a text describes another machine") {
  const Machine machine = machine_from("l2=256k,threads=4,l3=2M", {});
  CHECK(machine == (Machine{32 * kKiB, 256 * kKiB, 2048 * kKiB, 4}));
  CHECK(machine_from("", machine) == machine);
}

TEST("a text that describes none is an error") {
  for (const char* text : {"l4=1k", "l2", "l2=", "l2=-1", "l2=1x", "l2=1e5", "l1=3", "threads=0",
                           "l2=1m,,l3=2m", "l3=1000000g", "l3=17179869185g"}) {
    CHECK_THROWS(machine_from(text, {}), Error);
  }
}

TEST("thresholds that are replica_context of the machine follow from it, and forced ones win") {
  const Machine usual{32 * kKiB, 1024 * kKiB, 32768 * kKiB, 0};
  const Thresholds of_usual = thresholds_from("", usual);
  CHECK_EQ(of_usual.tile_bytes, 256 * kKiB);
  CHECK_EQ(of_usual.loop_weight_bytes, 1024 * kKiB);
  CHECK_EQ(of_usual.cut_weight_bytes, 64 * kKiB);
  CHECK_EQ(of_usual.deferred_bytes, 32 * kKiB);
  CHECK_EQ(of_usual.inner_loop_bytes, 24 * kKiB);
  CHECK_EQ(of_usual.fused_block, 256);
  CHECK_EQ(of_usual.fused_piece, 16 * kKiB);
  CHECK_EQ(of_usual.tree_block_bytes, 16 * kKiB);
  CHECK_EQ(of_usual.product_block_bytes, 256 * kKiB);
  CHECK_EQ(of_usual.all_reduce_block, 4096);
  const Machine small{16 * kKiB, 128 * kKiB, 1024 * kKiB, 0};
  CHECK_EQ(thresholds_from("", small).tile_bytes, 32 * kKiB);
  CHECK_EQ(thresholds_from("tile_bytes=7", small).tile_bytes, 7);
  CHECK_EQ(thresholds_from("1", small).fused_block, 1);
}

TEST("bytes are told in the largest unit that they fill") {
  CHECK_EQ(text_of_bytes(0), std::string("0 bytes"));
  CHECK_EQ(text_of_bytes(1023), std::string("1023 bytes"));
  CHECK_EQ(text_of_bytes(32 << 10), std::string("32 KiB"));
  CHECK_EQ(text_of_bytes(1536 << 10), std::string("1.5 MiB"));
}
