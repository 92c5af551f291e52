// What Describe says about the machine.
#ifndef RESBM_STAGE_SERVER_MACHINE_INFO_H_
#define RESBM_STAGE_SERVER_MACHINE_INFO_H_

#include <cstdint>
#include <string>

namespace resbm::stage_server {

// The processor's name, for people; `device` itself where there is none.
std::string DeviceName(const std::string& device);
// Random, never 0: tells two lives of a server apart.
std::uint64_t NewIncarnation();

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_MACHINE_INFO_H_
