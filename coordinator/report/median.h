// The middle of measurements: of an even number the mean of the middle two.
#ifndef RESBM_COORDINATOR_REPORT_MEDIAN_H_
#define RESBM_COORDINATOR_REPORT_MEDIAN_H_

#include <vector>

namespace resbm::coordinator {

// In any order, at least one. Linear in time.
double Median(std::vector<double> values);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_MEDIAN_H_
