/// tokenize_tool TOKENIZER [marked|alone]: reads texts from standard input, each as its length in
/// bytes (uint64) and the bytes; writes for each the number of tokens (uint64), the tokens (int32),
/// and what they decode to (as the texts came). `marked`: special tokens in a text are read as
/// such; `alone`: each text has what the tokenizer puts around one. For compare_tokenizers.py.
#include <cstdio>
#include <iostream>

#include "text/tokenizer.hpp"

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
  const std::string option = count == 3 ? words[2] : "";
  const bool marked = option == "marked", alone = option == "alone";
  if (count != 2 && !marked && !alone) return 2;
  try {
    const auto tokenizer = tern::text::open_tokenizer(words[1]);
    for (std::uint64_t length = read_length(); std::cin; length = read_length()) {
      std::string text(length, '\0');
      std::cin.read(text.data(), static_cast<std::streamsize>(length));
      std::vector<std::int32_t> tokens;
      const tern::text::Affixes& affixes = tokenizer->affixes();
      if (alone) tokens = affixes.before;
      if (marked)
        tokenizer->encode_marked(text, tokens);
      else
        tokenizer->encode(text, tokens);
      if (alone) tokens.insert(tokens.end(), affixes.after.begin(), affixes.after.end());
      write(tokens.data(), tokens.size(), sizeof(std::int32_t));
      const std::string decoded = tokenizer->decode(tokens);
      write(decoded.data(), decoded.size(), 1);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
