"""SVM training kernels: RBF rows, arg-extrema, and SMO training.

Source: B. Catanzaro, "OpenCL Optimization Case Study: Support Vector Machine Training", AMD, 2011.
"""
