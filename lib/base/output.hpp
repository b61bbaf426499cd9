/// Standard output as a product: a command that only shows something has failed if nobody got it.
#pragma once

namespace tern {

/// Opens those of the streams 0, 1 and 2 that the caller closed, so that no file of a run gets
/// their number and the log's lines with it; writing to them still fails. First thing in main().
void hold_standard_streams();

/// Flushes what was written to standard output, by whatever library. False, with one line on
/// standard error, if some of it could not be written (a full disk, a closed stream).
bool output_written();

}  // namespace tern
