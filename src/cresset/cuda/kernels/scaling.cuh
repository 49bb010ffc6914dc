// What a GradScaler does to its scale after a step: one thread, so that the host need not wait.
#pragma once
#include "types.cuh"

extern "C" __global__ void update_scale(float* scale, int32_t* tracker, const float* found, const double growth,
                                        const double backoff, const int32_t interval) {
  after_earlier_work();
  if (*found != 0.0f) {
    *scale = static_cast<float>(*scale * backoff);
    *tracker = 0;
    return;
  }
  const int32_t good = *tracker + 1;
  if (good == interval) {
    const float grown = static_cast<float>(*scale * growth);
    if (isfinite(grown)) *scale = grown;
    *tracker = 0;
  } else {
    *tracker = good;
  }
}
