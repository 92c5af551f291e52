#include "coordinator/report/summary.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::ordered_json;

// The fields of a struct are listed once, in `Fields` below; one visitor writes them, one reads them.
class Writer {
 public:
  void operator()(const char* name, const std::string& value) { json[name] = value; }
  void operator()(const char* name, std::int64_t value) { json[name] = value; }
  void operator()(const char* name, double value) {
    // Bytes a step are whole more often than not.
    if (std::abs(value) < 1e15 && value == std::floor(value)) {
      json[name] = static_cast<std::int64_t>(value);
    } else {
      json[name] = value;  // nlohmann writes null for NaN and infinity
    }
  }
  void operator()(const char* name, const std::optional<double>& value) {
    if (value.has_value()) {
      (*this)(name, *value);
    } else {
      json[name] = nullptr;
    }
  }
  template <typename T>
  void operator()(const char* name, const std::vector<T>& values) {
    json[name] = Json::array();
    for (const T& value : values) json[name].push_back(Nested(value));
  }
  template <typename T>
  void Object(const char* name, const T& value) {
    json[name] = Nested(value);
  }

  Json json = Json::object();

 private:
  template <typename T>
  static Json Nested(const T& value);
};

class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) status_ = Wrong("", "an object");
  }

  void operator()(const char* name, std::string& value) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    if (found->is_string()) {
      value = found->get<std::string>();
    } else {
      status_ = Wrong(name, "a string");
    }
  }
  void operator()(const char* name, std::int64_t& value) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    if (found->is_number_integer()) {
      value = found->get<std::int64_t>();
    } else {
      status_ = Wrong(name, "a whole number");
    }
  }
  void operator()(const char* name, double& value) {
    std::optional<double> read;
    (*this)(name, read);
    value = read.value_or(0);
  }
  void operator()(const char* name, std::optional<double>& value) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    if (found->is_number()) {
      value = found->get<double>();
    } else {
      status_ = Wrong(name, "a number or null");
    }
  }
  template <typename T>
  void operator()(const char* name, std::vector<T>& values) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    if (!found->is_array()) {
      status_ = Wrong(name, "an array");
      return;
    }
    for (std::size_t i = 0; i < found->size() && status_.ok(); ++i) {
      Nested((*found)[i], absl::StrCat(path_, name, "[", i, "]."), &values.emplace_back());
    }
  }
  template <typename T>
  void Object(const char* name, T& value) {
    const Json* found = Find(name);
    if (found != nullptr) Nested(*found, absl::StrCat(path_, name, "."), &value);
  }

  const absl::Status& status() const { return status_; }

 private:
  // Null also when something went wrong before.
  const Json* Find(const char* name) const {
    if (!status_.ok()) return nullptr;
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  absl::Status Wrong(absl::string_view name, absl::string_view wanted) const {
    return absl::InvalidArgumentError(absl::StrCat("summary: ", path_, name, " is not ", wanted));
  }
  template <typename T>
  void Nested(const Json& json, std::string path, T* value);

  const Json& json_;
  const std::string path_;
  absl::Status status_;
};

// S: the struct or the const struct.
template <typename V, typename S>
void Fields(V& visit, S& value) {
  using T = std::remove_const_t<S>;
  if constexpr (std::is_same_v<T, UncompressedBytes>) {
    visit("fp16", value.fp16);
    visit("fp32", value.fp32);
  } else if constexpr (std::is_same_v<T, BoundarySummary>) {
    visit("cut_point", value.cut_point);
    visit("direction", value.direction);
    visit("codec", value.codec);
    visit("ratio", value.ratio);
    visit("payload_bytes", value.payload_bytes);
    visit("metadata_bytes", value.metadata_bytes);
    visit.Object("uncompressed_bytes", value.uncompressed_bytes);
  } else if constexpr (std::is_same_v<T, PeakMemory>) {
    visit("total", value.total);
    visit("weights", value.weights);
    visit("optimizer", value.optimizer);
    visit("activations", value.activations);
    visit("buffers", value.buffers);
  } else if constexpr (std::is_same_v<T, ServerSummary>) {
    visit("version", value.version);
    visit("device_name", value.device_name);
    visit("libtorch_version", value.libtorch_version);
    visit("cpu_capability", value.cpu_capability);
  } else if constexpr (std::is_same_v<T, StageSummary>) {
    visit("stage", value.stage);
    visit("device", value.device);
    visit("parameters", value.parameters);
    visit("forward_seconds", value.forward_seconds);
    visit("backward_seconds", value.backward_seconds);
    visit("waiting_up_seconds", value.waiting_up_seconds);
    visit("waiting_down_seconds", value.waiting_down_seconds);
    visit("commit_seconds", value.commit_seconds);
    visit("utilization", value.utilization);
    visit.Object("peak_memory_bytes", value.peak_memory);
    visit("gpu_utilization", value.gpu_utilization);
    visit.Object("server", value.server);
  } else if constexpr (std::is_same_v<T, EvaluationSummary>) {
    visit("step", value.step);
    visit("loss", value.loss);
    visit("top1", value.top1);
    visit("samples", value.samples);
    visit("seconds", value.seconds);
  } else {
    static_assert(std::is_same_v<T, Summary>);
    visit("name", value.name);
    visit("started", value.started);
    visit("version", value.version);
    visit("steps", value.steps);
    visit("skipped_steps", value.skipped_steps);
    visit("samples", value.samples);
    visit("training_seconds", value.training_seconds);
    visit("final_loss", value.final_loss);
    visit("top1", value.top1);
    visit("validation_loss", value.validation_loss);
    visit("perplexity", value.perplexity);
    visit("bits_per_byte", value.bits_per_byte);
    visit("samples_per_second", value.samples_per_second);
    visit("tokens_per_second", value.tokens_per_second);
    visit("step_seconds_median", value.step_seconds_median);
    visit("epoch_seconds", value.epoch_seconds);
    visit("planned_step_seconds", value.planned_step_seconds);
    visit("boundaries", value.boundaries);
    visit("communication_share_exposed", value.communication_share_exposed);
    visit("communication_share_total", value.communication_share_total);
    visit("bubble_share", value.bubble_share);
    visit("stages", value.stages);
    visit("evaluations", value.evaluations);
  }
}

template <typename T>
Json Writer::Nested(const T& value) {
  Writer writer;
  Fields(writer, value);
  return std::move(writer.json);
}

template <typename T>
void Reader::Nested(const Json& json, std::string path, T* value) {
  Reader reader(json, std::move(path));
  Fields(reader, *value);
  status_ = reader.status();
}

}  // namespace

std::string ToJson(const Summary& summary) {
  Writer writer;
  Fields(writer, summary);
  return writer.json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Summary> ParseSummary(absl::string_view json) {
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return absl::InvalidArgumentError("summary: not JSON");
  Summary summary;
  Reader reader(parsed, "");
  Fields(reader, summary);
  RESBM_RETURN_IF_ERROR(reader.status());
  return summary;
}

}  // namespace resbm::coordinator
