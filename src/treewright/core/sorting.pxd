"""The order of numbers, for loops compiled ahead."""

from libc.stdint cimport int64_t


cdef enum:
    FEW = 15  # so many are sorted by insertion


cdef inline void _swap(int64_t[::1] order, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    order[i], order[j] = order[j], order[i]


cdef inline void argsort(const double[::1] keys, Py_ssize_t n, int64_t[::1] order) noexcept nogil:
    """Put the numbers 0, ..., n - 1 into the order of their keys, by quicksort; none of the keys is NaN.

    Equal keys are in no order that means anything, but in the same one on every machine.
    """
    cdef:
        Py_ssize_t[64] lows, highs  # parts to be done later, each at least as long as all that is done before it
        Py_ssize_t later = 1, low, high, middle, i, j
        int64_t number
        double key
    for i in range(n):
        order[i] = i
    lows[0], highs[0] = 0, n - 1
    while later > 0:
        later -= 1
        low, high = lows[later], highs[later]
        while high - low >= FEW:
            middle = (low + high) >> 1
            if keys[order[middle]] < keys[order[low]]:
                _swap(order, low, middle)
            if keys[order[high]] < keys[order[middle]]:
                _swap(order, middle, high)
            if keys[order[middle]] < keys[order[low]]:
                _swap(order, low, middle)
            key = keys[order[middle]]
            _swap(order, middle, high)
            i, j = low, high - 1
            while True:
                while i < high and keys[order[i]] < key:
                    i += 1
                while j >= low and key < keys[order[j]]:
                    j -= 1
                if i >= j:
                    break
                _swap(order, i, j)
                i += 1
                j -= 1
            _swap(order, i, high)
            if high - i > i - low:
                lows[later], highs[later] = i + 1, high
                high = i - 1
            else:
                lows[later], highs[later] = low, i - 1
                low = i + 1
            later += 1
        for i in range(low + 1, high + 1):
            number = order[i]
            key = keys[number]
            j = i
            while j > low and key < keys[order[j - 1]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = number
