/// tokenize_tool TOKENIZER [marked]: reads texts from standard input, each as its length in bytes
/// (uint64) and the bytes; writes for each the number of tokens (uint64), the tokens (int32), and
/// what they decode to (as the texts came). `marked`: special tokens in a text are read as such.
/// For compare_tokenizers.py.
#include <cstdio>
#include <iostream>

#include "data/tokenizer.hpp"

namespace {

std::uint64_t read_length() {
  std::uint64_t length = 0;
  std::cin.read(reinterpret_cast<char*>(&length), sizeof length);
  return length;
}

void write(const void* bytes, std::uint64_t count, std::uint64_t size) {
  std::cout.write(reinterpret_cast<const char*>(&count), sizeof count);
  std::cout.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count * size));
}

}  // namespace

int main(int count, char** words) {
  const bool marked = count == 3 && std::string(words[2]) == "marked";
  if (count != 2 && !marked) return 2;
  try {
    const auto tokenizer = tern::data::open_tokenizer(words[1]);
    for (std::uint64_t length = read_length(); std::cin; length = read_length()) {
      std::string text(length, '\0');
      std::cin.read(text.data(), static_cast<std::streamsize>(length));
      std::vector<std::int32_t> tokens;
      if (marked)
        tokenizer->encode_marked(text, tokens);
      else
        tokenizer->encode(text, tokens);
      write(tokens.data(), tokens.size(), sizeof(std::int32_t));
      const std::string decoded = tokenizer->decode(tokens);
      write(decoded.data(), decoded.size(), 1);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
