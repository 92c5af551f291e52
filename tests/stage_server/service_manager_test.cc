#include "stage_server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace resbm::stage_server {
namespace {

// A service manager: its socket, and what came.
class Manager {
 public:
  // `name`: a path, or an abstract name after '@'.
  explicit Manager(const std::string& name) : name_(name), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const socklen_t size = offsetof(sockaddr_un, sun_path) + name.size();
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0) << strerror(errno);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    close(fd_);
    if (name_[0] != '@') unlink(name_.c_str());
  }
  std::string Receive() {
    char text[256];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return size < 0 ? std::string("(nothing)") : std::string(text, static_cast<std::size_t>(size));
  }

 private:
  const std::string name_;
  const int fd_;
};

TEST(ServiceManager, HearsEachStateAsOneDatagram) {
  // In /tmp: the path of a socket has room for 108 bytes, which Bazel's folders fill.
  Manager manager(absl::StrCat("/tmp/resbm-service-manager-test-", getpid()));
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  EXPECT_TRUE(NotifyServiceManager("STOPPING=1").ok());
  EXPECT_EQ(manager.Receive(), "READY=1");
  EXPECT_EQ(manager.Receive(), "STOPPING=1");
  EXPECT_EQ(manager.Receive(), "(nothing)");
}

TEST(ServiceManager, HearsItOnAnAbstractSocketToo) {
  Manager manager(absl::StrCat("@resbm-service-manager-test-", getpid()));
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  EXPECT_EQ(manager.Receive(), "READY=1");
}

TEST(ServiceManager, ThatIsNotThereIsNoError) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  setenv("NOTIFY_SOCKET", "", 1);
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  unsetenv("NOTIFY_SOCKET");
}

TEST(ServiceManager, ThatHasGoneIsAnErrorThatNamesTheSocket) {
  const std::string name = absl::StrCat("/tmp/resbm-service-manager-gone-", getpid());
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  const absl::Status told = NotifyServiceManager("READY=1");
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(told.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(told.message().find(name), absl::string_view::npos) << told;
}

TEST(ServiceManager, AnAddressThatIsNoneIsRefused) {
  for (const std::string& name : {std::string("vsock:2:1234"), "/" + std::string(200, 'x')}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_EQ(NotifyServiceManager("READY=1").code(), absl::StatusCode::kInvalidArgument) << name;
  }
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace resbm::stage_server
