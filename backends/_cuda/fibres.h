// The threads of a block as fibres: each has a stack of its own, and one of them runs at a time, until it meets a
// barrier. So a kernel with barriers runs on one thread of the system, in an order that is the same each time.
// A fibre that has ended waits for the next block: to create one takes as long as a short kernel.
//
// What the hardware leaves undefined ends the block here, and `failure` says what it was.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "meetings.h"

namespace emulation {

class Fibres {
 public:
  /// Runs `body` once for each of `count` threads of a block. `enter(thread)` is called whenever a thread
  /// continues. Returns false, and abandons the threads, where one did what is undefined, or where the remaining ones
  /// would wait forever.
  bool run(unsigned count, std::function<void(unsigned)> enter, std::function<void()> body) {
    begin(count, std::move(enter), std::move(body));
    while (is_alive())
      if (!advance()) fail_waiting();
    is_running_ = false;
    return failure_.empty();
  }

  // `run` in parts, for a block that runs beside others: `begin`, then `advance` while `is_alive`, then `stop`.

  void begin(unsigned count, std::function<void(unsigned)> enter, std::function<void()> body) {
    enter_ = std::move(enter);
    body_ = std::move(body);
    failure_.clear();
    block_ = BlockMeeting();
    warps_.assign((count + kWarpSize - 1) / kWarpSize, Warp());
    for (unsigned warp = 0; warp < warps_.size(); ++warp) warps_[warp] = Warp(count - warp * kWarpSize);
    while (fibres_.size() < count) fibres_.push_back(std::make_unique<Fibre>());
    for (unsigned thread = 0; thread < count; ++thread) prepare(*fibres_[thread]);
    count_ = alive_ = count;
    is_running_ = true;
  }

  /// Whether some threads have not ended, and none did what is undefined.
  bool is_alive() const { return alive_ > 0 && failure_.empty(); }

  /// Lets each thread that can continue do so, in their order. Returns whether any got further: one that still waits
  /// for another block did not, and its warp has looked at least once, from the beginning to the end.
  bool advance() {
    progressed_ = false;
    for (int pass = 0; pass < kPassesOfALook && !progressed_; ++pass) {
      for (unsigned thread = 0; thread < count_ && failure_.empty(); ++thread) {
        Fibre& fibre = *fibres_[thread];
        if (fibre.ended || fibre.waits()) continue;
        if (!fibre.looks_again) progressed_ = true;
        resume(thread);
      }
    }
    return progressed_;
  }

  /// The remaining threads would wait forever.
  void fail_waiting() { failure_ = who_waits(count_); }

  /// Abandons the remaining threads. Returns whether there were none, and none did what is undefined.
  bool stop() {
    is_running_ = false;
    return alive_ == 0 && failure_.empty();
  }

  /// Returns once `arrived()`, in which the lanes of a warp may meet once. Meanwhile the other threads of the block
  /// continue, and other blocks that run beside it.
  template <typename Arrived>
  void wait_until(Arrived arrived) {
    while (!arrived()) {
      if (!can_meet("a wait for another block")) return;
      Fibre& fibre = *fibres_[current_];
      fibre.looks_again = true;
      leave(fibre);
    }
    if (is_running_) fibres_[current_]->looks_again = false;
    progressed_ = true;
  }

  /// Why the last block failed, or a meeting outside of `run`; empty after a block that did not.
  std::string take_failure() { return std::exchange(failure_, {}); }

  /// Waits until all threads that have not ended have called this, from the same place in the source. Of a warp, either
  /// all threads take part or none.
  void meet_all(std::source_location at) {
    if (!can_meet("__syncthreads")) return;
    if (block_.arrived == 0) block_.at = at;
    if (!is_same_place(block_.at, at)) {
      fail("__syncthreads at " + place(at) + " in divergent code: other threads wait at " + place(block_.at));
      return abandon();
    }
    Fibre& fibre = *fibres_[current_];
    fibre.wait_for(block_);
    ++block_.arrived;
    if (!complete_block()) leave(fibre);
  }

  /// The value that lane `source` of this warp brings. Waits until every lane of `mask` is in the same intrinsic with
  /// the same mask.
  template <typename T>
  T exchange(const char* intrinsic, uint32_t mask, T value, unsigned source) {
    static_assert(sizeof(T) <= kSlotBytes);
    if (!can_meet(intrinsic)) return value;
    Fibre& fibre = *fibres_[current_];
    std::memcpy(fibre.brought, &value, sizeof(T));
    fibre.source = current_ / kWarpSize * kWarpSize + source;
    meet_lanes(intrinsic, mask, source, false);
    std::memcpy(&value, fibre.received, sizeof(T));
    return value;
  }

  /// A bit for each lane of `mask`: what it voted. Waits as `exchange` does.
  uint32_t ballot(const char* intrinsic, uint32_t mask, bool vote) {
    if (!can_meet(intrinsic)) return 0;
    Fibre& fibre = *fibres_[current_];
    fibre.source = current_;
    meet_lanes(intrinsic, mask, lane(), vote);
    return fibre.votes;
  }

  /// What `lane` of this warp last brought to `exchange`.
  template <typename T>
  T brought_by(unsigned lane) const {
    static_assert(sizeof(T) <= kSlotBytes);
    T value;
    std::memcpy(&value, fibres_[current_ / kWarpSize * kWarpSize + lane]->brought, sizeof(T));
    return value;
  }

  /// The lane of the running thread in its warp.
  unsigned lane() const { return current_ % kWarpSize; }

  /// The lanes of its warp that exist.
  uint32_t lanes() const { return is_running_ ? warps_[current_ / kWarpSize].exist : ~0u; }

  /// The running thread did what is undefined. `abandon` must follow.
  void fail(const std::string& what) { failure_ = "thread " + std::to_string(current_) + ": " + what; }

  /// Leaves the running thread for good, without its destructors. Returns only outside of `run`.
  void abandon() {
    if (is_running_) leave(*fibres_[current_]);
  }

 private:
  static constexpr size_t kStackBytes = 256 * 1024, kSlotBytes = 8;
  /// In the first pass lanes may end an old look, whose meeting others began; then they look, meet, and end the new
  /// one.
  static constexpr int kPassesOfALook = 4;

  struct Fibre {
    std::unique_ptr<char[]> stack{new char[kStackBytes]};  // not touched, so not yet memory
    ucontext_t context;
    jmp_buf place;
    bool made = false, ended = true;
    bool looks_again = false;  // it waits for another block
    const Meeting* meeting = nullptr;
    unsigned round = 0, source = 0;
    uint32_t votes = 0;
    alignas(kSlotBytes) char brought[kSlotBytes] = {};
    alignas(kSlotBytes) char received[kSlotBytes];

    void wait_for(const Meeting& where) {
      meeting = &where;
      round = where.round;
    }
    bool waits() const { return meeting != nullptr && meeting->round == round; }
  };

  void prepare(Fibre& fibre) {
    if (!fibre.ended) fibre.made = false;  // given up where it waited
    fibre.ended = fibre.looks_again = false;
    fibre.meeting = nullptr;
  }

  bool can_meet(const char* intrinsic) {
    if (!is_running_)
      failure_ =
          std::string(intrinsic) + " was in a kernel of `launch`, but should be in one of `launch_with_barriers`";
    return is_running_;
  }

  /// Whether the threads that meet at the block's barrier were all there; then they may continue.
  bool complete_block() {
    if (alive_ == 0 || block_.arrived != alive_) return false;
    for (unsigned warp = 0; warp < warps_.size(); ++warp) {
      const uint32_t ended = warps_[warp].exist & ~warps_[warp].alive;
      if (warps_[warp].alive != 0 && ended != 0) {
        const unsigned thread = warp * kWarpSize + static_cast<unsigned>(std::countr_zero(ended));
        failure_ = "__syncthreads at " + place(block_.at) + " in divergent code: thread " + std::to_string(thread) +
                   " has ended, while others of its warp wait";
        return false;
      }
    }
    block_.arrived = 0;
    ++block_.round;
    return true;
  }

  void meet_lanes(const char* intrinsic, uint32_t mask, unsigned source, bool vote) {
    Warp& warp = warps_[current_ / kWarpSize];
    if (!may_meet(warp, mask, lane(), source)) {
      fail(std::string(intrinsic) + " " + wrong_mask(warp, mask, lane(), source));
      return abandon();
    }
    WarpMeeting& group = warp.meeting(intrinsic, mask);
    Fibre& fibre = *fibres_[current_];
    fibre.wait_for(group);
    group.arrived |= 1u << lane();
    group.votes |= (vote ? 1u : 0u) << lane();
    if (group.arrived != group.mask) return leave(fibre);
    const unsigned first = current_ - lane();
    for (unsigned other = 0; other < kWarpSize; ++other) {
      if ((mask >> other & 1u) == 0) continue;
      Fibre& receiver = *fibres_[first + other];
      std::memcpy(receiver.received, fibres_[receiver.source]->brought, kSlotBytes);
      receiver.votes = group.votes;
    }
    group.arrived = group.votes = 0;
    ++group.round;
  }

  /// Two threads that wait for each other in vain, in words.
  std::string who_waits(unsigned count) const {
    for (unsigned thread = 0; thread < count; ++thread)
      if (fibres_[thread]->looks_again) return "thread " + std::to_string(thread) + " waits for another block forever";
    for (unsigned thread = 0; thread < count; ++thread) {
      const unsigned missing = missing_for(thread, count);
      if (missing < count)
        return "thread " + std::to_string(thread) + " " + doing(thread) + " forever: thread " +
               std::to_string(missing) + " " + doing(missing);
    }
    return "threads wait at a barrier that others never reach";
  }

  /// A thread that `thread` waits for and that is not where it is; `count` if there is none.
  unsigned missing_for(unsigned thread, unsigned count) const {
    if (fibres_[thread]->ended) return count;
    const WarpMeeting* group = warps_[thread / kWarpSize].of(fibres_[thread]->meeting);
    if (group != nullptr)
      return thread / kWarpSize * kWarpSize + static_cast<unsigned>(std::countr_zero(group->mask & ~group->arrived));
    for (unsigned other = 0; other < count; ++other)
      if (!fibres_[other]->ended && fibres_[other]->meeting != &block_) return other;
    return count;
  }

  std::string doing(unsigned thread) const {
    if (fibres_[thread]->ended) return "has ended";
    const WarpMeeting* group = warps_[thread / kWarpSize].of(fibres_[thread]->meeting);
    if (group == nullptr) return "waits at __syncthreads at " + place(block_.at);
    return "waits in " + std::string(group->intrinsic) + " with the mask " + hexadecimal(group->mask);
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
    warps_[current_ / kWarpSize].alive &= ~(1u << lane());
    complete_block();  // all remaining threads may be waiting at the barrier now
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
  std::vector<Warp> warps_;
  BlockMeeting block_;
  std::string failure_;
  bool is_running_ = false, progressed_ = false;
  std::function<void(unsigned)> enter_;
  std::function<void()> body_;
  unsigned current_ = 0, alive_ = 0, count_ = 0;
};

/// Where several blocks run beside each other, the fibres of the one that runs; nullptr elsewhere.
inline Fibres*& fibres_of_one_of_many() {
  static thread_local Fibres* fibres = nullptr;
  return fibres;
}

/// The fibres of the running block. They are kept for the thread of the system, so that their stacks are allocated
/// once.
inline Fibres& fibres() {
  static thread_local Fibres fibres;
  return fibres_of_one_of_many() != nullptr ? *fibres_of_one_of_many() : fibres;
}

}  // namespace emulation
