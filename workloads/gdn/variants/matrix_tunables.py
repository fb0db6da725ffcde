"""What can be tuned of matrix tiles: of the products over positions, of the input's gradient, of dgamma's product."""

from __future__ import annotations

from perfport.workload import Tunable

BOTH = {  # of the products over positions and of dgamma's
    "units": Tunable(1, (0, 1), "matrix units, where the device has them"),
    "width": Tunable({"cpu": 16, "gpu": 4}, (4, 8, 16), "words per vector; 4 on GPUs"),
    "tile_rows": Tunable({"cpu": 6, "gpu": 12}, (4, 6, 8, 12, 16), "rows of a work-item's tile, at most"),
    "tile_columns": Tunable({"cpu": 32, "gpu": 4}, (4, 8, 16, 32, 48), "its columns, along what is contiguous"),
    "resident": Tunable(
        {"cpu": 1, "gpu": 640}, (1, 384, 512, 640, 768), "work-items to a compute unit that registers are saved for"
    ),
}

OVER_POSITIONS = {
    **BOTH,
    "group": Tunable({"cpu": 1, "gpu": 256}, (1, 64, 128, 256, 512), "work-items of a group, at most"),
    "fetches": Tunable({"cpu": 1, "gpu": 2}, (1, 2, 4, 8), "turns of staging that are unrolled"),
    "unroll": Tunable({"cpu": 1, "gpu": 2}, (1, 2, 4, 8), "turns of the inner loop that are unrolled"),
    "unit_rows": Tunable(32, (16, 32, 48, 64), "rows of a warp's tile on matrix units, at most"),
    "unit_columns": Tunable(32, (16, 32, 48, 64), "its columns"),
    "unit_resident": Tunable(768, (512, 640, 768, 1024), "as resident, of the products over positions on matrix units"),
    "turn_channels": Tunable(256, (64, 128, 192, 256), "output channels at a time, at most"),
    "turn_positions": Tunable(32, (16, 32, 64, 96), "positions at a time, about"),
    "staged": Tunable({"cpu": 512, "gpu": 32}, (8, 16, 32, 64, 128, 512), "channels staged at a time, without units"),
    "stage_gamma": Tunable({"cpu": 0, "gpu": 1}, (0, 1), "gamma goes through local memory, without units"),
    "block": Tunable({"cpu": 96, "gpu": 1}, (1, 48, 96, 192), "positions staged at a time in NHWC"),
    "newton": Tunable({"cpu": 3, "gpu": 0}, (0, 3), "Newton steps of the inverse root; 0: the builtin"),
}

OF_INPUT = {
    "input_resident": Tunable(
        512, (512, 640, 768, 1024), "as unit_resident, of the input's gradient, which reads three arrays"
    ),
}

OF_GAMMA = {
    **BOTH,
    "gamma_group": Tunable({"cpu": 1, "gpu": 512}, (1, 64, 128, 256, 512), "as group, of dgamma's product"),
    "gamma_fetches": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8), "as fetches, in dgamma's product"),
    "gamma_unroll": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8), "as unroll, in dgamma's product"),
    "gamma_units": Tunable(48, (16, 32, 48), "rows and columns of a warp's tile of dgamma on matrix units, at most"),
    "gamma_rows": Tunable({"cpu": 512, "gpu": 192}, (48, 96, 192, 512), "rows of a group's tile of dgamma, at most"),
    "gamma_columns": Tunable({"cpu": 512, "gpu": 192}, (48, 96, 192, 512), "its columns, at most"),
    "gamma_depth": Tunable({"cpu": 96, "gpu": 64}, (16, 32, 64, 96), "positions of dgamma's product staged at a time"),
    "gamma_copies": Tunable(
        {"cpu": 0, "gpu": 1}, (0, 1, 2, 3), "steps that are copied ahead to local memory, at most, on matrix units"
    ),
    "run": Tunable({"cpu": 4096, "gpu": 2048}, (512, 1024, 2048, 4096, 8192), "positions of a split of dgamma"),
}
