// Owners of arrays and memory are C++'s; a status becomes an exception.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "model.h"

namespace {

void check(int status) {
    if (status != MODEL_OK) throw std::runtime_error(model_strerror(status));
}

model_f64_1 view(std::vector<double> &of) {
    return model_f64_1_of(of.data(), static_cast<int64_t>(of.size()));
}

}  // namespace

int main() {
    std::vector<double> u(50), slope(50);
    for (std::size_t i = 0; i < u.size(); i++) u[i] = 0.1 * static_cast<double>(i);
    const model_f64_1 a = view(u), grad = view(slope);
    double value = 0;
    check(loss_value_and_grad_alloc(&a, 0.05, 6, &value, &grad, nullptr));
    std::printf("%.17g %.17g\n", value, slope[7]);

    model_f64_1 kept{};
    check(positive_alloc(&a, &kept));
    std::printf("%lld %.17g\n", static_cast<long long>(kept.shape[0]), kept.data[3]);
    std::free(kept.data);

    const model_f64_1 shorter = model_f64_1_of(slope.data(), 49);
    try {
        check(loss_value_and_grad_alloc(&a, 0.05, 6, nullptr, &shorter, nullptr));
    } catch (const std::runtime_error &error) {
        std::printf("%s\n", error.what());
    }
    return 0;
}
