// One request to a web server on this machine, as Prometheus makes it.
#ifndef RESBM_TESTS_SUPPORT_HTTP_GET_H_
#define RESBM_TESTS_SUPPORT_HTTP_GET_H_

#include <map>
#include <string>

namespace resbm::testing {

struct HttpReply {
  int code = 0;  // 0: nobody answered
  std::string head, body;
};

// `address`: "127.0.0.1:PORT".
HttpReply HttpGet(const std::string& address, const std::string& path);

// The samples of Prometheus' text format, by what stands before the value: `up{job="a"}`.
std::map<std::string, double> ParseSamples(const std::string& text);

}  // namespace resbm::testing

#endif  // RESBM_TESTS_SUPPORT_HTTP_GET_H_
