#include "tests/support/small_images.h"

#include <cstdint>

#include "tests/support/subprocess.h"

namespace resbm::testing {
namespace {

std::string BigEndian(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}

void WriteSplit(const std::string& prefix, int count) {
  std::string images = BigEndian(2051) + BigEndian(count) + BigEndian(28) + BigEndian(28);
  std::string labels = BigEndian(2049) + BigEndian(count);
  std::uint32_t noise = 12345;
  for (int i = 0; i < count; ++i) {
    const int label = i % 10;
    labels.push_back(static_cast<char>(label));
    for (int row = 0; row < 28; ++row) {
      for (int column = 0; column < 28; ++column) {
        noise = noise * 1664525u + 1013904223u;
        const int value = static_cast<int>(noise >> 26) + (row / 2 == label ? 190 : 0);
        images.push_back(static_cast<char>(value));
      }
    }
  }
  WriteFileOrDie(prefix + "-images-idx3-ubyte", images);
  WriteFileOrDie(prefix + "-labels-idx1-ubyte", labels);
}

}  // namespace

std::string WriteSmallMnist(int train, int test) {
  const std::string folder = NewFolder("small-mnist");
  WriteSplit(folder + "/train", train);
  WriteSplit(folder + "/t10k", test);
  return folder;
}

std::string SmallMnistJob(const std::string& directory, const std::string& more) {
  return R"pb(
name: "small"
seed: 3
model {
  resnet {
    input { channels: 1 height: 28 width: 28 }
    stem { channels: 8 stride: 2 }
    group { blocks: 2 channels: 8 }
    group { blocks: 2 channels: 16 stride: 2 }
  }
}
boundary { ratio: 4 }
cut_point { after: "group0.0" }
cut_point { after: "group0.1" }
cut_point { after: "group1.0" }
data { mnist { directory: ")pb" +
         directory + R"pb(" } augment { crop: true } }
)pb" + more;
}

}  // namespace resbm::testing
