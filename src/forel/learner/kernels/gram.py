"""Sums of products of the features, the constant and the labels of rows."""

from forel.jit import njit

__all__ = ["add_products"]

compiled = njit()


@compiled
def add_products(indptr, columns, values, labels, importance, products):
    """Add v u uᵀ of each row with a positive importance v, in order; u has the features, then 1 and the label."""
    last = products.shape[0] - 1
    for r in range(labels.size):
        v, y = importance[r], labels[r]
        if v > 0:
            for i in range(indptr[r], indptr[r + 1]):
                row, x = columns[i], v * values[i]
                for j in range(indptr[r], indptr[r + 1]):
                    products[row, columns[j]] += x * values[j]
                products[row, last - 1] += x
                products[row, last] += x * y
            products[last - 1, last - 1] += v
            products[last - 1, last] += v * y
            products[last, last] += v * y * y
