// A folder below the system's temporary one, gone with the object.
#ifndef RESBM_COORDINATOR_CLI_TEMPORARY_FOLDER_H_
#define RESBM_COORDINATOR_CLI_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace resbm::coordinator {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& prefix) {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / (prefix + "-XXXXXX")).string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Empty: it could not be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_TEMPORARY_FOLDER_H_
