#include "coordinator/compare/job_fields.h"

#include <memory>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/plan/model_plan.h"

namespace resbm::coordinator {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr char kUnset[] = "-";

// As text, to compare with text.
std::string DefaultOf(const Message& message, const FieldDescriptor& field) {
  std::unique_ptr<Message> empty(message.New());
  std::string text;
  TextFormat::PrintFieldValueToString(*empty, &field, -1, &text);
  return text;
}

void Flatten(const Message& message, const std::string& prefix, bool keep_defaults,
             std::map<std::string, std::string>* fields) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string path = absl::StrCat(prefix, field->name());
    const bool keep = keep_defaults || (prefix.empty() && field->name() == "cut_point");
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string one = field->is_repeated() ? absl::StrCat(path, "[", i, "]") : path;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& nested = field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                     : reflection->GetMessage(message, field);
        if (field->containing_oneof() != nullptr || field->is_repeated()) (*fields)[one] = "{}";
        Flatten(nested, absl::StrCat(one, "."), keep, fields);
        continue;
      }
      std::string text;
      TextFormat::PrintFieldValueToString(message, field, field->is_repeated() ? i : -1, &text);
      const bool is_default = !field->is_repeated() && field->has_default_value() && text == DefaultOf(message, *field);
      if (keep || !is_default) (*fields)[one] = text;
    }
  }
}

}  // namespace

std::string FieldValue(const std::map<std::string, std::string>& fields, const std::string& path) {
  const auto found = fields.find(path);
  if (found != fields.end()) return found->second;
  if (absl::StartsWith(path, "cut_point")) return kUnset;
  const Message* message = &v1::Job::default_instance();
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (field != nullptr) message = &message->GetReflection()->GetMessage(*message, field);
    field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated()) return kUnset;
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) break;
  }
  return field->has_default_value() ? DefaultOf(*message, *field) : kUnset;
}

std::string ShortName(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::map<std::string, std::string> JobFields(const v1::Job& job) {
  std::map<std::string, std::string> fields;
  Flatten(job, "", /*keep_defaults=*/false, &fields);
  // Where what is not set is not what the schema calls the default.
  if (!job.boundary().has_ratio()) {
    if (const int ratio = RatioOf(job.boundary()); ratio != job.boundary().ratio()) {
      fields["boundary.ratio"] = absl::StrCat(ratio);
    }
    for (int i = 0; i < job.cut_point_size(); ++i) {
      const v1::Boundary& boundary = job.cut_point(i).boundary();
      if (!boundary.has_ratio() && RatioOf(boundary) != boundary.ratio()) {
        fields[absl::StrCat("cut_point[", i, "].boundary.ratio")] = absl::StrCat(RatioOf(boundary));
      }
    }
  }
  const v1::Wire::Dtype unset = UnsetWireDtype(job);
  if (!job.wire().has_activations() && unset != job.wire().activations()) {
    fields["wire.activations"] = v1::Wire::Dtype_Name(unset);
  }
  if (!job.wire().has_gradients() && unset != job.wire().gradients()) {
    fields["wire.gradients"] = v1::Wire::Dtype_Name(unset);
  }
  return fields;
}

std::vector<FieldDifference> JobDifferences(const v1::Job& from, const v1::Job& to) {
  const std::map<std::string, std::string> a = JobFields(from), b = JobFields(to);
  std::map<std::string, std::string> all = a;
  all.insert(b.begin(), b.end());
  std::vector<FieldDifference> differences;
  for (const auto& [path, value] : all) {
    if (path == "seed" || path == "name") continue;
    FieldDifference difference = {path, FieldValue(a, path), FieldValue(b, path)};
    if (difference.from != difference.to) differences.push_back(difference);
  }
  return differences;
}

}  // namespace resbm::coordinator
