// Files that are either the old or the new one, whole, whatever happens in between.
#ifndef RESBM_COORDINATOR_REPORT_ATOMIC_FILE_H_
#define RESBM_COORDINATOR_REPORT_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// Writes all of `bytes` to `fd`, however many calls it takes. `path` is for the message.
// RESOURCE_EXHAUSTED: disk or quota full. Others as write(2) says.
absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path);

// fsync of a folder: what was created or renamed in it survives a power cut. Errors as open(2), fsync(2).
absl::Status SyncDirectory(const std::string& directory);

// Writes to a temporary file beside `path`, syncs it, renames it to `path`, syncs the folder. After an
// error `path` is what it was, and the temporary file is gone. RESOURCE_EXHAUSTED: disk full; NOT_FOUND: no
// such folder; PERMISSION_DENIED and others as the system says. Every message names the file.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_ATOMIC_FILE_H_
