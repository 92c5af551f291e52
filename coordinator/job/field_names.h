// What error messages say about a message type's fields and about the values that a field takes.
#ifndef RESBM_COORDINATOR_JOB_FIELD_NAMES_H_
#define RESBM_COORDINATOR_JOB_FIELD_NAMES_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace resbm::coordinator {

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);

std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& type);

// "one of FP16, BF16, FP32", "a whole number (int32)", "true or false", "a message in braces, ...".
std::string ExpectedValue(const google::protobuf::FieldDescriptor& field);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_FIELD_NAMES_H_
