"""Pictures and films in the orders of dimensions that TensorBoard shows."""

import cresset

from .encoding import colors_last, figure_pixels


def convert_to_HWC(tensor, input_format):
    """An array as (height, width, colors), of any order of the letters N, H, W and C; several become one grid."""
    return colors_last(cresset.from_numpy(tensor), input_format).numpy()


def make_grid(I, ncols=8):
    """Pictures (number, colors, height, width) as one, `ncols` in a row."""
    return colors_last(cresset.from_numpy(I), "NCHW", ncols).permute(2, 0, 1).numpy()


def figure_to_image(figures, close=True):
    """The picture of a Matplotlib figure, or those of a list of them."""
    return figure_pixels(figures, close).numpy()


def _prepare_video(V):
    """Films (number, time, colors, height, width) as one (time, height, width, colors): side by side, in a field
    whose number of places is a power of two and twice as wide as high at most.
    """
    film = cresset.from_numpy(V)
    if film.dtype == cresset.uint8:
        film = film.to(cresset.float32) / 255
    count, times, colors, height, width = film.shape
    places = 1
    while places < count:
        places *= 2
    rows = 1
    while rows * rows * 4 <= places:
        rows *= 2
    columns = places // rows
    field = cresset.zeros(places, times, colors, height, width, dtype=film.dtype)
    field[:count] = film
    field = field.reshape(rows, columns, times, colors, height, width).permute(2, 0, 4, 1, 5, 3)
    return field.reshape(times, rows * height, columns * width, colors).numpy()
