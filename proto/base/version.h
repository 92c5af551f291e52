// What this release calls itself.
#ifndef RESBM_PROTO_BASE_VERSION_H_
#define RESBM_PROTO_BASE_VERSION_H_

#include <string>

namespace resbm {

inline constexpr char kVersion[] = "0.1.0";

// "resbm 0.1.0"
inline std::string VersionText(const std::string& program) { return program + " " + kVersion; }

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_VERSION_H_
