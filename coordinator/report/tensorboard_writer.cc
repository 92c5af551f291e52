#include "coordinator/report/tensorboard_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "coordinator/report/atomic_file.h"
#include "coordinator/report/tensorboard.pb.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

namespace tb = ::resbm::tensorboard;

template <typename Integer>
std::string LittleEndian(Integer value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// Masked, as the format wants it: a checksum of bytes that hold checksums is no good.
std::string Checksum(absl::string_view bytes) {
  // ISA-L's has the iSCSI polynomial, which is CRC-32C's, without the two inversions. It does not write to the buffer.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  const std::uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~std::uint32_t{0});
  return LittleEndian<std::uint32_t>(((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

tb::Event EventAt(std::int64_t step, absl::Time now) {
  tb::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  event.set_step(step);
  return event;
}

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

std::string TensorboardRecord(absl::string_view bytes) {
  const std::string length = LittleEndian<std::uint64_t>(bytes.size());
  return absl::StrCat(length, Checksum(length), bytes, Checksum(bytes));
}

absl::StatusOr<std::unique_ptr<TensorboardWriter>> TensorboardWriter::Create(const std::string& directory,
                                                                             absl::Time now) {
  // The words before the first number are what TensorBoard looks for.
  std::string path =
      absl::StrCat(directory, "/events.out.tfevents.", absl::ToUnixSeconds(now), ".", HostName(), ".", getpid());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<TensorboardWriter> writer(new TensorboardWriter(std::move(path), fd));
  tb::Event version = EventAt(0, now);
  version.set_file_version("brain.Event:2");
  RESBM_RETURN_IF_ERROR(writer->Append(version.SerializeAsString()));
  return writer;
}

TensorboardWriter::~TensorboardWriter() { close(fd_); }

absl::Status TensorboardWriter::AddScalars(std::int64_t step, absl::Time now, const Scalars& scalars) {
  tb::Event event = EventAt(step, now);
  for (const auto& [tag, value] : scalars) {
    tb::Summary::Value* added = event.mutable_summary()->add_value();
    added->set_tag(tag);
    added->set_simple_value(static_cast<float>(value));
  }
  return Append(event.SerializeAsString());
}

absl::Status TensorboardWriter::AddText(std::int64_t step, absl::Time now, const std::string& tag,
                                        const std::string& text) {
  tb::Event event = EventAt(step, now);
  tb::Summary::Value* added = event.mutable_summary()->add_value();
  added->set_tag(tag);
  added->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  tb::TensorProto* tensor = added->mutable_tensor();
  tensor->set_dtype(tb::TensorProto::DT_STRING);
  tensor->mutable_tensor_shape()->add_dim()->set_size(1);
  tensor->add_string_val(text);
  return Append(event.SerializeAsString());
}

absl::Status TensorboardWriter::Append(const std::string& event) {
  const off_t before = lseek(fd_, 0, SEEK_END);
  const absl::Status status = WriteAll(fd_, TensorboardRecord(event), path_);
  // Half a record would hide all that follow. Of no use on what is not a file.
  if (!status.ok() && before >= 0 && ftruncate(fd_, before) != 0) return status;
  return status;
}

}  // namespace resbm::coordinator
