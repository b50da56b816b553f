// The few MPI functions that carry messages, without a header of MPI. The process has loaded some
// MPI, and passes the addresses of its functions and the sizes of its handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/communicator.h"

namespace samegrad {

struct MpiLibrary {
  struct Functions {
    std::uintptr_t isend, irecv, testall, cancel, iallgather, iprobe, recv, abort;
  };
  Functions functions;
  int rank, size;
  int handle_bytes;                 // of communicators, requests and datatypes: 4 or 8
  int status_bytes;                 // of an MPI_Status
  std::uint64_t messages, notices;  // two communicators over all ranks
  std::uint64_t byte;               // the datatype
  std::int64_t bucket_bytes;        // MPI counts in int: larger messages go in pieces of these
};

class Mpi {
 public:
  // ValueError for handles of another size.
  static std::unique_ptr<Mpi> of(const MpiLibrary& library);
  virtual ~Mpi() = default;

  // Operations that were started.
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual bool done() = 0;
    // Nothing is received any more, but what has begun to arrive.
    virtual void cancel() = 0;
  };
  virtual std::unique_ptr<Pending> start(std::span<const Message> sends,
                                         std::span<const Message> receives) = 0;
  // `bytes` of each rank, in their order, at `all`.
  virtual std::unique_ptr<Pending> start_gather(const std::byte* own, std::byte* all,
                                                std::int64_t bytes) = 0;
  // Notices have a channel of their own, and one size.
  virtual std::unique_ptr<Pending> start_notice(int rank, const std::byte* data,
                                                std::int64_t bytes) = 0;
  virtual bool has_notice(int rank) = 0;
  virtual void read_notice(int rank, std::byte* data, std::int64_t bytes) = 0;
  // Ends the processes of all ranks.
  virtual void abort(int code) noexcept = 0;
};

}  // namespace samegrad
