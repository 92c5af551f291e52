#include "proto/data/normalization.h"

namespace resbm::data {

Normalization NormalizationOf(const v1::Data& data) {
  switch (data.kind_case()) {
    case v1::Data::kFashionMnist: return {{0.2860f}, {0.3530f}};
    case v1::Data::kMnist: return {{0.1307f}, {0.3081f}};
    case v1::Data::kCifar10: return {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}};
    case v1::Data::kCifar100: return {{0.5071f, 0.4865f, 0.4409f}, {0.2673f, 0.2564f, 0.2762f}};
    case v1::Data::kText:
    case v1::Data::KIND_NOT_SET: break;
  }
  return {};
}

}  // namespace resbm::data
