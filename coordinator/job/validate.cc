#include "coordinator/job/validate.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/job/unsupported.h"
#include "coordinator/job/validate_training.h"
#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/partition.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr std::size_t kLongestName = 100;

void CheckName(const std::string& name, FieldErrors& errors) {
  const auto allowed = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
  };
  if (name.empty()) {
    errors.Add("name", "is empty; it names the run directory");
  } else if (!std::all_of(name.begin(), name.end(), allowed)) {
    errors.Add("name", "\"", name, "\" has other characters than letters, digits, '-', '_' and '.'");
  } else if (name[0] == '.' || name[0] == '-') {
    errors.Add("name", "\"", name, "\" must begin with a letter, a digit or '_'");
  } else if (name.size() > kLongestName) {
    errors.Add("name", "is ", name.size(), " characters long; at most ", kLongestName);
  }
}

// What a data set's samples are.
struct DataSet {
  const char* field;
  const std::string* directory;
  std::vector<std::int64_t> image;  // [channels, height, width]
  std::int64_t classes;
};

std::optional<DataSet> DataSetOf(const v1::Data& data) {
  switch (data.kind_case()) {
    case v1::Data::kFashionMnist: return DataSet{"fashion_mnist", &data.fashion_mnist().directory(), {1, 28, 28}, 10};
    case v1::Data::kMnist: return DataSet{"mnist", &data.mnist().directory(), {1, 28, 28}, 10};
    case v1::Data::kCifar10: return DataSet{"cifar10", &data.cifar10().directory(), {3, 32, 32}, 10};
    case v1::Data::kCifar100: return DataSet{"cifar100", &data.cifar100().directory(), {3, 32, 32}, 100};
    case v1::Data::kText:
    case v1::Data::KIND_NOT_SET: break;
  }
  return std::nullopt;
}

void CheckText(const v1::Data& data, bool evaluate, FieldErrors& errors) {
  const v1::Data::Text& text = data.text();
  if (text.file().empty()) errors.Add("data.text.file", "is empty; name files, or a folder with .txt files");
  for (int i = 0; i < text.file_size(); ++i) {
    const std::string path = absl::StrCat("data.text.file[", i, "]");
    if (text.file(i).empty()) errors.Add(path, "is empty; it names a file or folder");
  }
  if (!(text.test_share() >= 0 && text.test_share() < 1)) {
    errors.Add("data.text.test_share", text.test_share(), " is out of range; it must be from 0 to below 1");
  } else if (text.test_share() == 0 && evaluate) {
    errors.Add("data.text.test_share", "0 leaves nothing to test on; raise it, or set run.evaluate to false");
  }
  if (data.augment().flip() || data.augment().crop()) errors.Add("data.augment", "is of images; leave it out for text");
}

void CheckData(const v1::Data& data, bool evaluate, FieldErrors& errors) {
  if (data.kind_case() == v1::Data::KIND_NOT_SET) {
    errors.Add("data",
               "says no data set; choose fashion_mnist, mnist, cifar10 or cifar100 { directory: ... } or text { file: "
               "... }");
  }
  if (data.has_text()) CheckText(data, evaluate, errors);
  if (const std::optional<DataSet> set = DataSetOf(data); set && set->directory->empty() && !data.has_fashion_mnist()) {
    // Debian's package has a place for Fashion-MNIST alone.
    errors.Add(absl::StrCat("data.", set->field, ".directory"), "is empty; name the folder that holds the files");
  }
  for (const auto& [field, limit] :
       {std::pair("limit_train", data.limit_train()), std::pair("limit_test", data.limit_test())}) {
    if (limit < 0) errors.Add(absl::StrCat("data.", field), limit, " is negative; 0 is all samples");
  }
}

void CheckModelTakesData(const v1::Job& job, FieldErrors& errors) {
  const std::optional<DataSet> set = DataSetOf(job.data());
  const bool is_resnet = job.model().has_resnet();
  if (job.model().has_transformer() && set) {
    errors.Add("model.transformer", "is a model of bytes, but ", set->field, " holds images; set data { text { file: ",
               "... } }, or choose resnet {} or mlp {}");
  }
  if ((is_resnet || job.model().has_mlp()) && job.data().has_text()) {
    errors.Add(is_resnet ? "model.resnet" : "model.mlp",
               "takes images, but the data is text; choose transformer {}, or another data set");
  }
  if (!set || !(is_resnet || job.model().has_mlp())) return;
  const v1::ImageShape& input = is_resnet ? job.model().resnet().input() : job.model().mlp().input();
  const std::int64_t classes = is_resnet ? job.model().resnet().classes() : job.model().mlp().classes();
  const std::string path = is_resnet ? "model.resnet." : "model.mlp.";
  const std::vector<std::int64_t> image = {input.channels(), input.height(), input.width()};
  if (image != set->image) {
    errors.Add(path + "input", absl::StrJoin(image, "x"), ", but images of ", set->field, " are ",
               absl::StrJoin(set->image, "x"), " (channels x height x width)");
  }
  if (classes != set->classes) {
    errors.Add(path + "classes", classes, ", but ", set->field, " has ", set->classes);
  }
}

void CheckWindows(const v1::Schedule& schedule, int stages, FieldErrors& errors) {
  const int count = schedule.windows_size();
  if (count == 0) return;
  if (count != stages) {
    errors.Add("schedule.windows", count, count == 1 ? " window for " : " windows for ", stages,
               stages == 1 ? " stage" : " stages", "; give one each, or leave them out");
  }
  for (int s = 0; s < count; ++s) {
    const std::string path = absl::StrCat("schedule.windows[", s, "]");
    if (schedule.windows(s) < 1) {
      errors.Add(path, schedule.windows(s), " is too small; at least 1");
    } else if (s > 0 && schedule.windows(s) > schedule.windows(s - 1)) {
      errors.Add(path, schedule.windows(s), " is more than the ", schedule.windows(s - 1),
                 " of the stage before it: windows must not grow downstream, the stage would wait for ever");
    }
  }
}

}  // namespace

FieldErrors FindErrors(const v1::Job& job, std::optional<int> requested_stages) {
  FieldErrors errors;
  CheckName(job.name(), errors);
  const std::optional<ModelPlan> model = ExpandModel(job, errors);
  if (model) {
    const std::optional<PartitionPlan> partition = PlanPartition(job, *model, requested_stages, errors);
    if (partition) CheckWindows(job.schedule(), static_cast<int>(partition->stages.size()), errors);
  }
  CheckBatch(job.batch(), errors);
  CheckOptimizer(job.optimizer(), errors);
  CheckData(job.data(), job.run().evaluate(), errors);
  CheckModelTakesData(job, errors);
  CheckRun(job.run(), errors);
  if (job.has_init_from() && job.init_from().path().empty()) {
    errors.Add("init_from.path", "is empty; it names a safetensors file");
  }
  CheckTimeouts(job.timeouts(), errors);
  return errors;
}

absl::Status ValidateJob(const LoadedJob& loaded, std::optional<int> requested_stages) {
  return loaded.locations.ToStatus(FindErrors(loaded.job, requested_stages));
}

absl::StatusOr<LoadedJob> LoadValidJob(const std::string& path, absl::Span<const std::string> overrides,
                                       std::optional<int> requested_stages) {
  RESBM_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(path, overrides));
  RESBM_RETURN_IF_ERROR(CheckSupported(loaded));
  RESBM_RETURN_IF_ERROR(ValidateJob(loaded, requested_stages));
  return loaded;
}

}  // namespace resbm::coordinator
