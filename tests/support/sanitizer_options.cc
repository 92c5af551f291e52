// Sanitizer options linked into every test and into every binary that a test starts: no path to a file is
// needed. Empty without a sanitizer.
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() {
  // Debian's protobuf, gRPC and LibTorch are not instrumented: report only accesses made by our own code.
  return "halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1";
}
#endif
#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=1:strict_string_checks=1"; }
#endif
