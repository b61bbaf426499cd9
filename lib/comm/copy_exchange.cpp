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

/// Words in each GPU's memory, which the other one writes. Rounds are counted from 1.
struct Words {
  std::uint32_t arrived[PartExchange::parts];  // round of the newest part
  std::uint32_t ended;                         // rounds that the other rank has ended
  std::uint32_t tried, source;                 // for the trial
};

/// What a rank tells the other.
struct Offer {
  std::array<char, 64> host{};
  gpu::SharedMemory received, words;
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
  CopyExchange(Group& group, const Operation& operation, void* received)
      : group_(group), operation_(operation), own_(gpu::allocate(sizeof(Words))) {
    const Words none{};
    gpu::copy(own_.get(), &none, sizeof none, nullptr);
    offer_.received = gpu::share(received);
    offer_.words = gpu::share(own_.get());
    const std::string host = host_name();
    std::copy_n(host.begin(), std::min(host.size(), offer_.host.size() - 1), offer_.host.begin());
    for (auto& event : sent_) event = gpu::make_event();
  }
  /// Memory that another process has open must not be freed.
  ~CopyExchange() override {
    received_.reset();
    others_.reset();
    if (opened_ && std::uncaught_exceptions() == 0) group_.barrier();
  }

  /// Whether both ranks could open what the other one offers. Collective.
  bool open() {
    const Offer other = of_other_rank(group_, offer_);
    if (other.host == offer_.host) {
      received_ = gpu::open(other.received);
      others_ = gpu::open(other.words);
    }
    return opened_ = !group_.any(!received_ || !others_);
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

  void send(std::size_t part, const void* data, std::size_t first, std::size_t bytes,
            const DeviceStream& stream) override {
    void* const on = stream.handle();
    gpu::await_word(&own()->ended, round_, on);
    gpu::start_copy(static_cast<char*>(received_.get()) + first,
                    static_cast<const char*>(data) + first, bytes, on);
    gpu::write_word(&other()->arrived[part], round_ + 1, on);
    gpu::record(sent_[part].get(), on);
  }
  void await(std::size_t part, const DeviceStream& stream) override {
    gpu::await(sent_[part].get(), stream.handle());
    gpu::await_word(&own()->arrived[part], round_ + 1, stream.handle());
    work_.follow(operation_, stream.handle());
  }
  void end_round(const DeviceStream& stream) override {
    gpu::write_word(&other()->ended, ++round_, stream.handle());
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
  std::shared_ptr<void> own_, others_, received_;  // the last: the other rank's
  Offer offer_;
  std::shared_ptr<void> sent_[parts];
  DeviceWork work_;
  std::uint32_t round_ = 0;  // rounds ended
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<PartExchange> copy_exchange(Group& group, const Operation& operation,
                                            void* received, std::size_t bytes) {
  if (group.size() != 2 || group.any(bytes == 0 || unwanted())) return nullptr;
  auto exchange = std::make_unique<CopyExchange>(group, operation, received);
  if (!exchange->open() || !exchange->works()) return nullptr;
  return exchange;
}

}  // namespace tern::comm::detail
