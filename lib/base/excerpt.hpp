/// Text of files, models and users in messages, on a terminal and in the log.
#pragma once
#include <string>
#include <string_view>

namespace tern {

/// `text` with control characters and bytes that are not UTF-8 as \xNN, so that no text moves the
/// cursor or changes what is shown. Line ends and tabs stay.
std::string printable(std::string_view text);

/// The same for a name or a quotation: line ends and tabs are written as \n, \r and \t.
std::string on_one_line(std::string_view text);

/// `text` on one line, truncated after about `most` bytes with "..."; never splits a UTF-8 character.
std::string excerpt(std::string_view text, std::size_t most = 80);

}  // namespace tern
