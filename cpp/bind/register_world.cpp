// The job of several processes that this one belongs to.
#include <pybind11/stl.h>

#include <csignal>
#include <cstdlib>

#include <unistd.h>

#include "base/error.h"
#include "bind/bind.h"
#include "runtime/world.h"
#include "runtime/world_sums.h"

namespace py = pybind11;

namespace samegrad {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

MpiWorld& joined() {
  MpiWorld* const all = world();
  if (!all) fail(ErrorKind::kRuntime, "world", "the process has joined no job.");
  return *all;
}

std::vector<Fingerprint> facts_of(const Facts& given) {
  std::vector<Fingerprint> facts;
  for (const auto& [name, value] : given) facts.push_back({name, value});
  return facts;
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::int64_t(seconds * 1000));
}

// Addresses and numbers by their names, as mpi4py and the loaded library tell them.
MpiLibrary library_of(const py::dict& given) {
  const auto number = [&](const char* name) { return given[name].cast<std::uint64_t>(); };
  return {{number("MPI_Isend"), number("MPI_Irecv"), number("MPI_Testall"), number("MPI_Cancel"),
           number("MPI_Iallgather"), number("MPI_Iprobe"), number("MPI_Recv"), number("MPI_Abort")},
          int(number("rank")),
          int(number("size")),
          int(number("handle_bytes")),
          int(number("status_bytes")),
          number("messages"),
          number("notices"),
          number("byte"),
          std::int64_t(number("piece_bytes"))};
}

// The shared memory of the segments of all ranks, in their order. Without segments the ranks are on
// several machines: null.
std::unique_ptr<SharedMemory> shared_of(int rank, const std::vector<std::uintptr_t>& segments,
                                        std::int64_t bytes) {
  if (segments.empty()) return nullptr;
  std::vector<std::byte*> at;
  for (const std::uintptr_t segment : segments) {
    at.push_back(reinterpret_cast<std::byte*>(segment));  // NOLINT: where MPI has mapped it
  }
  return std::make_unique<SharedMemory>(rank, std::move(at), bytes);
}

}  // namespace

void register_world(py::module_& m) {
  m.def(
      "join_world",
      [](const py::dict& library, const std::vector<std::uintptr_t>& segments,
         std::int64_t segment_bytes, double patience, int stack_signal, const Facts& build) {
        const MpiLibrary mpi = library_of(library);
        MpiWorld& job =
            join_world(mpi, shared_of(mpi.rank, segments, segment_bytes), milliseconds(patience),
                       [stack_signal] { (void)::kill(::getpid(), stack_signal); });
        job.compared().build = facts_of(build);
      },
      py::arg("library"), py::arg("segments"), py::arg("segment_bytes"), py::arg("patience"),
      py::arg("stack_signal"), py::arg("build"), "Makes this process a rank of its MPI job: once.");
  m.def(
      "own_replicas",
      [](const std::vector<int>& processes) {
        if (processes.empty()) return std::pair(0, 0);
        const ReplicaRange own = communicator_of(processes).own();
        return std::pair(own.begin, own.end);
      },
      py::arg("processes"));
  const auto unlocked = py::call_guard<py::gil_scoped_release>();
  m.def(
      "world_agree",
      [](const Facts& facts) { joined().check_fingerprints(facts_of(facts)), joined().barrier(); },
      py::arg("facts"), unlocked);
  m.def(
      "world_gather",
      [](const py::bytes& own) {
        const std::string mine = own;
        std::vector<std::string> all;
        {
          const py::gil_scoped_release release;
          all = joined().gather(mine);
        }
        py::list result;
        for (const std::string& one : all) result.append(py::bytes(one));
        return result;
      },
      py::arg("own"));
  m.def(
      "set_patience", [](double seconds) { joined().set_patience(milliseconds(seconds)); },
      py::arg("seconds"));
  m.def("set_sums_as_bfloat16", &set_sums_as_bfloat16, py::arg("yes"));
  m.def("world_calls", [] { return joined().calls(); });
  m.def("world_failure", [] { return joined().failure_elsewhere(); });
  m.def(
      "world_fail", [](const std::string& why) { joined().fail_with(why); }, py::arg("why"));
  m.def(
      "leave_world", [] { joined().leave(); }, unlocked);
  m.def(
      "abort_world", [](int code) { joined().abort(code); }, py::arg("code"), unlocked);
}

}  // namespace samegrad
