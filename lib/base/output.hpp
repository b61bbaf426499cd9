/// Standard output as a result: a command that only prints has failed if its output is lost.
#pragma once

namespace tern {

/// Reopens those of descriptors 0, 1 and 2 that the caller closed, so that no file of a run gets
/// their number and with it the log's lines; writing to them still fails. First call in main().
void hold_standard_streams();

/// Flushes standard output (stdio and iostream). False, with one line on standard error, if any of
/// it could not be written (full disk, closed stream).
bool output_written();

}  // namespace tern
