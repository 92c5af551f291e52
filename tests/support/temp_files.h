// Small files for tests.
#ifndef RESBM_TESTS_SUPPORT_TEMP_FILES_H_
#define RESBM_TESTS_SUPPORT_TEMP_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace resbm::testing {

// A new empty directory below $TEST_TMPDIR, gone with the object.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Writes a file (and the folder it is in); returns its path.
  std::string Write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

// Empty when there is no such file.
std::string ReadFile(const std::string& path);

// What `gzip` would make of it.
std::string Gzip(std::string_view bytes);

// 4 bytes, the most significant first.
std::string BigEndian(std::uint32_t value);

}  // namespace resbm::testing

#endif  // RESBM_TESTS_SUPPORT_TEMP_FILES_H_
