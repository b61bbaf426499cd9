#include "comm/detail/copy_exchange.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <vector>

#include "base/error.hpp"
#include "base/host.hpp"
#include "comm/detail/device_work.hpp"
#include "comm/gpu.hpp"
#include "comm/gpu_peers.hpp"

namespace tern::comm::detail {
namespace {

/// Words in a GPU's memory, which one other GPU writes. Parts of a slot are counted from 1.
struct Words {
  std::uint32_t arrived[PartExchange::slots];   // the newest part
  std::uint32_t released[PartExchange::slots];  // the newest that the other rank released
  std::uint32_t tried;                          // for the trial
};

/// What a rank tells the others.
struct Offer {
  std::array<char, 64> host{};
  gpu::SharedMemory slots, words;
};

/// Memory of another rank's GPU.
struct Peer {
  int rank = 0;
  std::shared_ptr<void> slots, words;
};

std::vector<Offer> of_all_ranks(Group& group, const Offer& own) {
  std::vector<Offer> offers(static_cast<std::size_t>(group.size()));
  offers[static_cast<std::size_t>(group.rank())] = own;
  for (int root = 0; root < group.size(); ++root)
    group.broadcast(&offers[static_cast<std::size_t>(root)], sizeof(Offer), root);
  return offers;
}

class CopyExchange : public PartExchange {
 public:
  CopyExchange(Group& group, const Operation& operation, void* memory, std::size_t bytes)
      : group_(group),
        operation_(operation),
        bytes_(bytes),
        own_(gpu::allocate(words_bytes(group))) {
    const std::vector<char> none(words_bytes(group));
    gpu::copy(own_.get(), none.data(), none.size(), nullptr);
    offer_.slots = gpu::share(memory);
    offer_.words = gpu::share(own_.get());
    const std::string host = host_name();
    std::copy_n(host.begin(), std::min(host.size(), offer_.host.size() - 1), offer_.host.begin());
    for (auto& event : sent_) event = gpu::make_event();
  }
  /// Memory that another process has open must not be freed.
  ~CopyExchange() override {
    peers_.clear();
    if (opened_ && std::uncaught_exceptions() == 0) group_.barrier();
  }

  /// Whether all ranks could open what the others offer. Collective.
  bool open() {
    const std::vector<Offer> offers = of_all_ranks(group_, offer_);
    bool all = true;
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (rank == group_.rank()) continue;
      const Offer& offer = offers[static_cast<std::size_t>(rank)];
      if (all = all && offer.host == offer_.host; !all) break;
      peers_.push_back({rank, gpu::open(offer.slots), gpu::open(offer.words)});
      all = peers_.back().slots && peers_.back().words;
    }
    return opened_ = !group_.any(!all);
  }
  /// Whether words and copies arrive. Collective.
  bool works() {
    const auto stream = gpu::make_stream(), own = gpu::allocate(sizeof(std::uint32_t));
    auto* const one = static_cast<std::uint32_t*>(own.get());
    const bool copied = try_out(1, [&] {
      gpu::write_word(one, 1, stream.get());
      for (const Peer& peer : peers_)
        gpu::start_copy(&own_words(peer)->tried, one, sizeof *one, stream.get());
      gpu::synchronize(stream.get());
    });
    return copied && try_out(2, [&] {
             for (const Peer& peer : peers_)
               gpu::write_word(&own_words(peer)->tried, 2, stream.get());
             gpu::await_word(one, 1, stream.get());
             gpu::synchronize(stream.get());
           });
  }

  void send(std::size_t slot, const std::vector<Part>& parts, const DeviceStream& stream) override {
    void* const on = copies_.get();
    gpu::record(given_.get(), stream.handle());
    gpu::await(given_.get(), on);
    for (const Part& part : parts) {
      const Peer& peer = *std::find_if(peers_.begin(), peers_.end(),
                                       [&](const Peer& p) { return p.rank == part.rank; });
      gpu::await_word(&words_of(peer)->released[slot], counts_[slot], on);
      gpu::start_copy(static_cast<char*>(peer.slots.get()) + slot * bytes_ + part.sent_to,
                      part.data, part.bytes, on);
      gpu::write_word(&own_words(peer)->arrived[slot], counts_[slot] + 1, on);
    }
    gpu::record(sent_[slot].get(), on);
  }
  void await(std::size_t slot, const DeviceStream& stream) override {
    gpu::await(sent_[slot].get(), stream.handle());
    for (const Peer& peer : peers_)
      gpu::await_word(&words_of(peer)->arrived[slot], counts_[slot] + 1, stream.handle());
    work_.follow(operation_, stream.handle());
  }
  void release(std::size_t slot, const DeviceStream& stream) override {
    ++counts_[slot];
    for (const Peer& peer : peers_)
      gpu::write_word(&own_words(peer)->released[slot], counts_[slot], stream.handle());
  }

 private:
  static std::size_t words_bytes(const Group& group) {
    return static_cast<std::size_t>(group.size()) * sizeof(Words);
  }
  /// Here, what the peer writes.
  Words* words_of(const Peer& peer) const { return static_cast<Words*>(own_.get()) + peer.rank; }
  /// There, what this rank writes.
  Words* own_words(const Peer& peer) const {
    return static_cast<Words*>(peer.words.get()) + group_.rank();
  }
  /// Whether the other ranks' attempts left `expected` here, on all ranks.
  template <class Attempt>
  bool try_out(std::uint32_t expected, const Attempt& attempt) {
    bool failed = false;
    try {
      attempt();
    } catch (const InternalError&) {
      failed = true;
    }
    if (group_.any(failed)) return false;
    for (const Peer& peer : peers_) {
      std::uint32_t found = 0;
      gpu::copy(&found, &words_of(peer)->tried, sizeof found, nullptr);
      failed = failed || found != expected;
    }
    return !group_.any(failed);
  }

  Group& group_;
  Operation operation_;
  std::size_t bytes_;          // of a slot
  std::shared_ptr<void> own_;  // one Words per rank
  std::vector<Peer> peers_;
  Offer offer_;
  std::shared_ptr<void> copies_ = gpu::make_stream();  // two at a time would delay the first
  std::shared_ptr<void> given_ = gpu::make_event(), sent_[slots];
  DeviceWork work_;
  std::uint32_t counts_[slots] = {};  // parts released
  bool opened_ = false;
};

}  // namespace

bool exchange_serves(const Group& group) {
  const char* const refused = std::getenv("NCCL_P2P_DISABLE");
  return group.size() > 1 && group.size() <= PartExchange::most_ranks &&
         !(refused && std::string(refused) == "1");
}

std::unique_ptr<PartExchange> copy_exchange(Group& group, const Operation& operation, void* slots,
                                            std::size_t bytes) {
  if (group.any(bytes == 0 || !exchange_serves(group))) return nullptr;
  auto exchange = std::make_unique<CopyExchange>(group, operation, slots, bytes);
  if (!exchange->open() || !exchange->works()) return nullptr;
  return exchange;
}

}  // namespace tern::comm::detail
