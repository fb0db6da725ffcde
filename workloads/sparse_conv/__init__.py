"""Pruned sparse convolution by code generation: weights as constants of the code.

Source: Dong Xiao, Liu Lei, Li Jing, Feng Xiaobing, "GPU performance optimisation for sparse CNNs", Journal of Software
(China) 2020 no. 9 (NVIDIA Tesla K40m).
"""
