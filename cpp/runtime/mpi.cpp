#include "runtime/mpi.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace samegrad {
namespace {

constexpr int kTag = 0;

// RuntimeError where a function of MPI failed.
void check(int code, const char* function) {
  if (code == 0) return;
  fail(ErrorKind::kRuntime, "MPI", function, " failed with code ", code,
       ": the connection to another process may be lost; start the job again.");
}

// Handle: int in MPICH and its kin, a pointer in Open MPI and in the standard ABI of MPI 5.
template <class Handle>
class TypedMpi final : public Mpi {
 public:
  explicit TypedMpi(const MpiLibrary& library) : library_(library) {}

  std::unique_ptr<Pending> start(std::span<const Message> sends,
                                 std::span<const Message> receives) override {
    auto pending = std::make_unique<Started>(*this);
    for (const Message& message : receives) {
      for_pieces(message, [&](std::byte* data, int bytes) {
        check(irecv_(data, bytes, byte_, message.rank, kTag, messages_, pending->add(true)),
              "MPI_Irecv");
      });
    }
    for (const Message& message : sends) {
      for_pieces(message, [&](const std::byte* data, int bytes) {
        check(isend_(data, bytes, byte_, message.rank, kTag, messages_, pending->add(false)),
              "MPI_Isend");
      });
    }
    return pending;
  }

  std::unique_ptr<Pending> start_gather(const std::byte* own, std::byte* all,
                                        std::int64_t bytes) override {
    auto pending = std::make_unique<Started>(*this);
    check(
        iallgather_(own, int(bytes), byte_, all, int(bytes), byte_, messages_, pending->add(false)),
        "MPI_Iallgather");
    return pending;
  }

  std::unique_ptr<Pending> start_notice(int rank, const std::byte* data,
                                        std::int64_t bytes) override {
    auto pending = std::make_unique<Started>(*this);
    check(isend_(data, int(bytes), byte_, rank, kTag, notices_, pending->add(false)), "MPI_Isend");
    return pending;
  }

  bool has_notice(int rank) override {
    int there = 0;
    std::vector<std::byte> status(std::size_t(library_.status_bytes));
    check(iprobe_(rank, kTag, notices_, &there, status.data()), "MPI_Iprobe");
    return there != 0;
  }

  void read_notice(int rank, std::byte* data, std::int64_t bytes) override {
    std::vector<std::byte> status(std::size_t(library_.status_bytes));
    check(recv_(data, int(bytes), byte_, rank, kTag, notices_, status.data()), "MPI_Recv");
  }

  void abort(int code) noexcept override { (void)abort_(messages_, code); }

 private:
  class Started final : public Pending {
   public:
    explicit Started(TypedMpi& mpi) : mpi_(mpi) {}
    Handle* add(bool receives) {
      // MPI is told where a request is when it starts: they must not move.
      if (requests_.empty() || requests_.back().size() == requests_.back().capacity()) {
        requests_.emplace_back().reserve(kChunk);
      }
      if (receives) ++receives_;
      return &requests_.back().emplace_back();
    }
    bool done() override {
      for (; first_ < requests_.size(); ++first_) {
        std::vector<Handle>& chunk = requests_[first_];
        std::vector<std::byte> statuses(chunk.size() * std::size_t(mpi_.library_.status_bytes));
        int flag = 0;
        check(mpi_.testall_(int(chunk.size()), chunk.data(), &flag, statuses.data()),
              "MPI_Testall");
        if (!flag) return false;
      }
      return true;
    }
    void cancel() override {
      std::size_t index = 0;
      for (std::size_t c = 0; c < requests_.size(); ++c) {
        for (Handle& request : requests_[c]) {
          if (index++ < receives_ && c >= first_) (void)mpi_.cancel_(&request);
        }
      }
    }

   private:
    static constexpr std::size_t kChunk = 256;
    TypedMpi& mpi_;
    std::vector<std::vector<Handle>> requests_;  // receives first
    std::size_t receives_ = 0, first_ = 0;
  };

  template <class F>
  void for_pieces(const Message& message, const F& f) const {
    for (std::int64_t at = 0; at < message.bytes; at += library_.bucket_bytes) {
      f(message.data + at, int(std::min(library_.bucket_bytes, message.bytes - at)));
    }
  }

  template <class Function>
  static Function* function(std::uintptr_t address) {
    return reinterpret_cast<Function*>(address);  // NOLINT: what dlsym gave
  }
  static Handle handle(std::uint64_t bits) {
    if constexpr (sizeof(Handle) == sizeof(int)) {
      return Handle(std::uint32_t(bits));
    } else {
      return reinterpret_cast<Handle>(bits);  // NOLINT
    }
  }

  const MpiLibrary library_;
  const Handle messages_ = handle(library_.messages), notices_ = handle(library_.notices),
               byte_ = handle(library_.byte);
  using Send = int(const void*, int, Handle, int, int, Handle, Handle*);
  using Receive = int(void*, int, Handle, int, int, Handle, Handle*);
  using TestAll = int(int, Handle*, int*, void*);
  using Cancel = int(Handle*);
  using Gather = int(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
  using Probe = int(int, int, Handle, int*, void*);
  using ReceiveNow = int(void*, int, Handle, int, int, Handle, void*);
  using Abort = int(Handle, int);
  Send* const isend_ = function<Send>(library_.functions.isend);
  Receive* const irecv_ = function<Receive>(library_.functions.irecv);
  TestAll* const testall_ = function<TestAll>(library_.functions.testall);
  Cancel* const cancel_ = function<Cancel>(library_.functions.cancel);
  Gather* const iallgather_ = function<Gather>(library_.functions.iallgather);
  Probe* const iprobe_ = function<Probe>(library_.functions.iprobe);
  ReceiveNow* const recv_ = function<ReceiveNow>(library_.functions.recv);
  Abort* const abort_ = function<Abort>(library_.functions.abort);
};

}  // namespace

std::unique_ptr<Mpi> Mpi::of(const MpiLibrary& library) {
  SG_CHECK_VALUE(library.bucket_bytes > 0 && library.bucket_bytes < (std::int64_t(1) << 31), "MPI",
                 "pieces of messages have 1 to 2^31 - 1 bytes: got ", library.bucket_bytes, ".");
  if (library.handle_bytes == int(sizeof(int))) return std::make_unique<TypedMpi<int>>(library);
  SG_CHECK_VALUE(library.handle_bytes == int(sizeof(void*)), "MPI", "handles have ", sizeof(int),
                 " or ", sizeof(void*), " bytes: got ", library.handle_bytes,
                 "; use MPICH, Open MPI or one of their kin.");
  return std::make_unique<TypedMpi<void*>>(library);
}

}  // namespace samegrad
