/* tiled.cl on matrix units: the same kernel as CUDA C++, so that NVIDIA's OpenCL gets it as PTX. */
#include "tile_matrix.h"
#include "tiled.cl"
