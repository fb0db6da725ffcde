"""Variants of svm_rbf: one module per problem, peers beside them."""
