#include "comm/detail/copy_exchange.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>

#include "base/error.hpp"
#include "base/host.hpp"
#include "comm/detail/device_work.hpp"
#include "comm/gpu.hpp"
#include "comm/gpu_peers.hpp"

namespace tern::comm::detail {
namespace {

/// Words in each GPU's memory, which the other one writes. Parts of a slot are counted from 1.
struct Words {
  std::uint32_t arrived[PartExchange::slots];   // the newest part
  std::uint32_t released[PartExchange::slots];  // the newest that the other rank released
  std::uint32_t tried, source;                  // for the trial
};

/// What a rank tells the other.
struct Offer {
  std::array<char, 64> host{};
  gpu::SharedMemory slots, words;
};

/// NCCL's own variable: no GPU is to reach another's memory.
bool unwanted() {
  const char* const value = std::getenv("NCCL_P2P_DISABLE");
  return value && std::string(value) == "1";
}

Offer of_other_rank(Group& group, const Offer& own) {
  Offer offers[2];
  offers[group.rank()] = own;
  for (int root = 0; root < 2; ++root) group.broadcast(&offers[root], sizeof(Offer), root);
  return offers[1 - group.rank()];
}

class CopyExchange : public PartExchange {
 public:
  CopyExchange(Group& group, const Operation& operation, void* memory, std::size_t bytes)
      : group_(group), operation_(operation), bytes_(bytes), own_(gpu::allocate(sizeof(Words))) {
    const Words none{};
    gpu::copy(own_.get(), &none, sizeof none, nullptr);
    offer_.slots = gpu::share(memory);
    offer_.words = gpu::share(own_.get());
    const std::string host = host_name();
    std::copy_n(host.begin(), std::min(host.size(), offer_.host.size() - 1), offer_.host.begin());
    for (auto& event : sent_) event = gpu::make_event();
  }
  /// Memory that another process has open must not be freed.
  ~CopyExchange() override {
    memory_.reset();
    others_.reset();
    if (opened_ && std::uncaught_exceptions() == 0) group_.barrier();
  }

  /// Whether both ranks could open what the other one offers. Collective.
  bool open() {
    const Offer other = of_other_rank(group_, offer_);
    if (other.host == offer_.host) {
      memory_ = gpu::open(other.slots);
      others_ = gpu::open(other.words);
    }
    return opened_ = !group_.any(!memory_ || !others_);
  }
  /// Whether words and copies arrive. Collective.
  bool works() {
    const auto stream = gpu::make_stream();
    const bool copied = try_out(1, [&] {
      gpu::write_word(&own()->source, 1, stream.get());
      gpu::start_copy(&other()->tried, &own()->source, sizeof(std::uint32_t), stream.get());
      gpu::synchronize(stream.get());
    });
    return copied && try_out(2, [&] {
             gpu::write_word(&other()->tried, 2, stream.get());
             gpu::await_word(&own()->source, 1, stream.get());
             gpu::synchronize(stream.get());
           });
  }

  void send(std::size_t slot, const void* data, std::size_t bytes, const DeviceStream& stream,
            const PartPlaces& places) override {
    void* const on = copies_.get();
    gpu::record(given_.get(), stream.handle());
    gpu::await(given_.get(), on);
    gpu::await_word(&own()->released[slot], counts_[slot], on);
    gpu::start_copy(static_cast<char*>(memory_.get()) + slot * bytes_ + places.sent, data, bytes,
                    on);
    gpu::write_word(&other()->arrived[slot], counts_[slot] + 1, on);
    gpu::record(sent_[slot].get(), on);
  }
  void await(std::size_t slot, const DeviceStream& stream) override {
    gpu::await(sent_[slot].get(), stream.handle());
    gpu::await_word(&own()->arrived[slot], counts_[slot] + 1, stream.handle());
    work_.follow(operation_, stream.handle());
  }
  void release(std::size_t slot, const DeviceStream& stream) override {
    gpu::write_word(&other()->released[slot], ++counts_[slot], stream.handle());
  }

 private:
  Words* own() const { return static_cast<Words*>(own_.get()); }
  Words* other() const { return static_cast<Words*>(others_.get()); }
  /// Whether the other rank's attempt left `expected` here, on both ranks.
  template <class Attempt>
  bool try_out(std::uint32_t expected, const Attempt& attempt) {
    bool failed = false;
    try {
      attempt();
    } catch (const InternalError&) {
      failed = true;
    }
    if (group_.any(failed)) return false;
    std::uint32_t found = 0;
    gpu::copy(&found, &own()->tried, sizeof found, nullptr);
    return !group_.any(found != expected);
  }

  Group& group_;
  Operation operation_;
  std::size_t bytes_;                            // of a slot
  std::shared_ptr<void> own_, others_, memory_;  // words of both; the other rank's slots
  Offer offer_;
  std::shared_ptr<void> copies_ = gpu::make_stream();  // two at a time would delay the first
  std::shared_ptr<void> given_ = gpu::make_event(), sent_[slots];
  DeviceWork work_;
  std::uint32_t counts_[slots] = {};  // parts released
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<PartExchange> copy_exchange(Group& group, const Operation& operation, void* slots,
                                            std::size_t bytes) {
  if (group.size() != 2 || group.any(bytes == 0 || unwanted())) return nullptr;
  auto exchange = std::make_unique<CopyExchange>(group, operation, slots, bytes);
  if (!exchange->open() || !exchange->works()) return nullptr;
  return exchange;
}

}  // namespace tern::comm::detail
