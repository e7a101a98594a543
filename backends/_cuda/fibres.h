// The threads of a block as fibres: each has a stack of its own, and one of them runs at a time, until it meets a
// barrier. So a kernel with barriers runs on one thread of the system, in an order that is the same each time.
// A fibre that has ended waits for the next block: to create one takes as long as a short kernel.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace emulation {

constexpr unsigned kWarpSize = 32;

/// A place where `expected` fibres meet. `round` counts how often they have.
struct Barrier {
  unsigned arrived = 0;
  unsigned round = 0;
};

class Fibres {
 public:
  /// Runs `body` once for each of `count` threads of a block. `enter(thread)` is called whenever a thread
  /// continues. Returns false, and abandons the threads, where the remaining ones would wait forever.
  bool run(unsigned count, std::function<void(unsigned)> enter, std::function<void()> body) {
    enter_ = std::move(enter);
    body_ = std::move(body);
    block_ = Barrier();
    warps_.assign((count + kWarpSize - 1) / kWarpSize, Barrier());
    while (fibres_.size() < count) fibres_.push_back(std::make_unique<Fibre>());
    for (unsigned thread = 0; thread < count; ++thread) prepare(*fibres_[thread]);
    alive_ = count;
    while (alive_ > 0) {
      bool progressed = false;
      for (unsigned thread = 0; thread < count; ++thread) {
        Fibre& fibre = *fibres_[thread];
        if (fibre.ended || (fibre.barrier != nullptr && fibre.barrier->round == fibre.round)) continue;
        progressed = true;
        resume(thread);
      }
      if (!progressed) return false;
    }
    return true;
  }

  /// Waits until all threads that have not ended have called this.
  void meet_all() { meet(block_, alive_); }

  /// The value that the lane at `distance` (exclusive or) of this warp brings.
  template <typename T>
  T exchange(T value, int distance) {
    static_assert(sizeof(T) <= kSlotBytes);
    Fibre& fibre = *fibres_[current_];
    // Two slots in turn: a lane that continues may store its next value before all lanes have read this one. It cannot
    // get further ahead than that.
    fibre.turn ^= 1;
    std::memcpy(fibre.slots[fibre.turn], &value, sizeof(T));
    meet(warps_[current_ / kWarpSize], kWarpSize);
    std::memcpy(&value, fibres_[current_ ^ static_cast<unsigned>(distance)]->slots[fibre.turn], sizeof(T));
    return value;
  }

 private:
  static constexpr size_t kStackBytes = 256 * 1024, kSlotBytes = 8;

  struct Fibre {
    std::unique_ptr<char[]> stack{new char[kStackBytes]};  // not touched, so not yet memory
    ucontext_t context;
    jmp_buf place;
    bool made = false, ended = true;
    Barrier* barrier = nullptr;
    unsigned round = 0, turn = 0;
    alignas(kSlotBytes) char slots[2][kSlotBytes];
  };

  void prepare(Fibre& fibre) {
    if (!fibre.ended) fibre.made = false;  // given up where it waited
    fibre.ended = false;
    fibre.barrier = nullptr;
    fibre.turn = 0;
  }

  void meet(Barrier& barrier, unsigned expected) {
    Fibre& fibre = *fibres_[current_];
    fibre.barrier = &barrier;
    fibre.round = barrier.round;
    if (++barrier.arrived == expected) {
      barrier.arrived = 0;
      ++barrier.round;
      return;
    }
    leave(fibre);
  }

  // Switching. A fibre is entered for the first time through its context, and later by longjmp, which saves the system
  // calls of swapcontext. AddressSanitizer supports swapcontext only.

  void resume(unsigned thread) {
    current_ = thread;
    enter_(thread);
    Fibre& fibre = *fibres_[thread];
    if (!fibre.made) {
      fibre.made = true;
      getcontext(&fibre.context);
      fibre.context.uc_stack.ss_sp = fibre.stack.get();
      fibre.context.uc_stack.ss_size = kStackBytes;
      fibre.context.uc_link = nullptr;
      makecontext(&fibre.context, &Fibres::begin, 0);
      running() = this;
      switch_to(fibre, /*first=*/true);
    } else {
      switch_to(fibre, /*first=*/false);
    }
  }

  static Fibres*& running() {
    static thread_local Fibres* fibres = nullptr;
    return fibres;
  }

  /// What a fibre runs: one thread of each block.
  static void begin() {
    Fibres& fibres = *running();
    for (;;) {
      fibres.body_();
      fibres.end(*fibres.fibres_[fibres.current_]);
    }
  }

  void end(Fibre& fibre) {
    fibre.ended = true;
    --alive_;
    // All remaining threads may be waiting at the barrier now.
    if (alive_ > 0 && block_.arrived == alive_) {
      block_.arrived = 0;
      ++block_.round;
    }
    leave(fibre);
  }

#ifdef __SANITIZE_ADDRESS__
  void switch_to(Fibre& fibre, bool) { swapcontext(&scheduler_, &fibre.context); }
  void leave(Fibre& fibre) { swapcontext(&fibre.context, &scheduler_); }
  ucontext_t scheduler_;
#else
  void switch_to(Fibre& fibre, bool first) {
    if (_setjmp(scheduler_) == 0) {
      if (first) {
        setcontext(&fibre.context);
      } else {
        _longjmp(fibre.place, 1);
      }
    }
  }
  void leave(Fibre& fibre) {
    if (_setjmp(fibre.place) == 0) _longjmp(scheduler_, 1);
  }
  jmp_buf scheduler_;
#endif

  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Barrier> warps_;
  Barrier block_;
  std::function<void(unsigned)> enter_;
  std::function<void()> body_;
  unsigned current_ = 0, alive_ = 0;
};

/// The fibres of this thread of the system. They are kept, so that their stacks are allocated once.
inline Fibres& fibres() {
  static thread_local Fibres fibres;
  return fibres;
}

}  // namespace emulation
