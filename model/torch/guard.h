// LibTorch throws; the stage's interface returns absl::Status.
#ifndef RESBM_MODEL_TORCH_GUARD_H_
#define RESBM_MODEL_TORCH_GUARD_H_

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace resbm::model {

inline absl::Status OutOfMemory(absl::string_view where, absl::string_view text) {
  return absl::ResourceExhaustedError(
      absl::StrCat(where, ": out of memory (", text,
                   "); use fewer samples per micro-batch, a smaller window, or give this stage fewer layers"));
}

// What `function` returns, a Status or StatusOr. RESOURCE_EXHAUSTED: it threw for lack of memory.
// INVALID_ARGUMENT: an index out of range. INTERNAL: it threw otherwise. `where` begins the message.
template <typename Function>
auto Guarded(absl::string_view where, Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const c10::OutOfMemoryError& error) {
    return OutOfMemory(where, error.what_without_backtrace());
  } catch (const c10::IndexError& error) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    const absl::string_view text = error.what_without_backtrace();
    // The CPU's allocator has no exception of its own.
    if (absl::StrContains(text, "can't allocate memory") || absl::StrContains(text, "not enough memory")) {
      return OutOfMemory(where, text);
    }
    return absl::InternalError(absl::StrCat(where, ": LibTorch: ", text));
  } catch (const std::bad_alloc&) {
    return OutOfMemory(where, "std::bad_alloc");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(where, ": ", error.what()));
  }
}

}  // namespace resbm::model

#endif  // RESBM_MODEL_TORCH_GUARD_H_
