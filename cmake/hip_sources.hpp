// Force-included with HIP, as nvcc includes its runtime's header: device versions of memcpy and of mathematical
// functions are declared before a source names them. Random123 knows nvcc only: here, too, its functions are for both
// sides, without SSE.
#pragma once
#include <hip/hip_runtime.h>
#define R123_CUDA_DEVICE __host__ __device__
#define R123_USE_SSE 0
