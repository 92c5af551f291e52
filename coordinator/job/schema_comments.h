// Comments of proto/resbm/v1/job.proto, which compiled descriptors do not keep.
#ifndef RESBM_COORDINATOR_JOB_SCHEMA_COMMENTS_H_
#define RESBM_COORDINATOR_JOB_SCHEMA_COMMENTS_H_

#include <string>

#include "google/protobuf/descriptor.h"

namespace resbm::coordinator {

// The job's schema as a file descriptor that knows its comments (GetSourceLocation), apart from the
// compiled one. Lives for ever; may be shared by threads.
const google::protobuf::FileDescriptor& CommentedSchema();

// What stands before the element and behind it on its line, white space collapsed.
std::string CommentOf(const google::protobuf::Descriptor& message);
std::string CommentOf(const google::protobuf::FieldDescriptor& field);
std::string CommentOf(const google::protobuf::EnumValueDescriptor& value);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_SCHEMA_COMMENTS_H_
