"""Recursive algorithms with new arrays: tables of values and of gradients compile them."""

import numpy as np


def fourier_transform(re, im):
    n = re.size
    if n == 1:
        return re, im
    even, even_im = fourier_transform(re[::2], im[::2])
    odd, odd_im = fourier_transform(re[1::2], im[1::2])
    angle = -2.0 * np.pi * np.arange(n // 2) / n
    c, s = np.cos(angle), np.sin(angle)
    t, t_im = c * odd - s * odd_im, c * odd_im + s * odd
    return np.concatenate([even + t, even - t]), np.concatenate([even_im + t_im, even_im - t_im])


def merge_sort(x):
    if x.size <= 1:
        return x
    a, b = merge_sort(x[: x.size // 2]), merge_sort(x[x.size // 2 :])
    out = np.empty(x.size)
    i = j = 0
    for k in range(x.size):
        if j >= b.size or (i < a.size and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out
