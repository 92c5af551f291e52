// A tiny data set that can be learned, for tests that train.
#ifndef RESBM_TESTS_SUPPORT_SMALL_IMAGES_H_
#define RESBM_TESTS_SUPPORT_SMALL_IMAGES_H_

#include <string>

namespace resbm::testing {

// MNIST's files (IDX, 28x28 grey, 10 classes) in a new folder: class c has a bright stripe at rows 2c and
// 2c+1 over noise, so that a small model learns it in a few steps. Always the same.
std::string WriteSmallMnist(int train, int test);

// A job for it: a small resnet with cut points after group0.0, group0.1 and group1.0, r = 4. `more` is
// appended.
std::string SmallMnistJob(const std::string& directory, const std::string& more);

}  // namespace resbm::testing

#endif  // RESBM_TESTS_SUPPORT_SMALL_IMAGES_H_
