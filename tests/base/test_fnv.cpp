#include <gtest/gtest.h>

#include "base/hashes.hpp"

namespace tern {
namespace {

// The test suite of draft-eastlake-fnv, FNV-1a with 64 bits.
TEST(Fnv, IsThePublishedHash) {
  EXPECT_EQ(Fnv().value(), 0xcbf29ce484222325u);
  EXPECT_EQ(Fnv().add("a").value(), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(Fnv().add("foobar").value(), 0x85944171f73967e8u);
  EXPECT_EQ(Fnv().add("foo").add("bar").value(), Fnv().add("foobar").value());
  EXPECT_EQ(Fnv().add("f\xff").value(), Fnv().add_word('f').add_word(0xff).value());
}

}  // namespace
}  // namespace tern
