"""SummaryWriter: write what a program measures to files that TensorBoard shows. No other package is needed to write
them.
"""

import os
import socket
import time

import cresset

from ..protobuf import message
from . import encoding, tensors
from .records import EventFile


class FileWriter:
    """One event file in a folder."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._file = EventFile(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        return self._file.log_dir

    def add_summary(self, summary, global_step=None, walltime=None):
        encoded = summary if isinstance(summary, bytes) else summary.SerializeToString()
        self._file.add(message(5, encoded), global_step, walltime)

    def add_graph(self, graph_def, walltime=None):
        self._file.add(message(4, graph_def), None, walltime)

    def flush(self):
        self._file.flush()

    def close(self):
        self._file.close()


class SummaryWriter:
    """Writes scalars, histograms, images, texts, graphs and hyperparameters by step.

    Args:
        log_dir: the folder; runs/<date>_<host><comment> without one.
        comment: ends the folder's name when there is no log_dir.
        purge_step: steps from this on, left by a run that crashed, are hidden.
        max_queue, flush_secs: how many events wait, and how long, before they are written.
        filename_suffix: ends the file's name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, cresset.utils.tensorboard.SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir = str(log_dir)
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = (
            purge_step,
            max_queue,
            flush_secs,
            filename_suffix,
        )
        self.file_writer = self.all_writers = None
        self._get_file_writer()
        if purge_step is not None:
            self.file_writer._file.add(message(7, b"\x08\x01"), purge_step)  # SessionLog: START

    def _get_file_writer(self):
        if self.all_writers is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.log_dir: self.file_writer}
        return self.file_writer

    def _writer_in(self, folder):
        self._get_file_writer()
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        return self.all_writers[folder]

    def _add(self, encoded, step, walltime):
        if isinstance(step, cresset.Tensor):
            step = step.item()
        self._get_file_writer().add_summary(encoded, step, walltime)

    def get_logdir(self):
        """The folder the files are in."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """Add one number."""
        self._add(encoding.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Add several numbers that share a chart; each gets a run of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            self._writer_in(folder).add_summary(encoding.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """Add the numbers of a tensor."""
        self._add(tensors.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """Add how often values occur; `bins` are edges, "tensorflow", or a word that NumPy knows."""
        self._add(encoding.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ):
        """Add a histogram that is counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"len(bucket_limits) != len(bucket_counts), got {len(bucket_limits)} and {len(bucket_counts)}"
            )
        self._add(
            encoding.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts),
            global_step,
            walltime,
        )

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """Add an image: bytes, or floats from 0 to 1."""
        self._add(encoding.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Add several images as one grid."""
        self._add(encoding.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None
    ):
        """Add an image with boxes drawn into it: rows (left, top, right, bottom); needs Pillow."""
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and len(labels) != len(box_tensor):
            labels = None
        encoded = encoding.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(encoded, global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """Add a Matplotlib figure, or a list of them."""
        several = isinstance(figure, (list, tuple))
        self._add(
            encoding.image(tag, encoding.figure_pixels(figure, close), dataformats="NCHW" if several else "CHW"),
            global_step,
            walltime,
        )

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Add videos (batch, time, colors, height, width); needs Pillow."""
        self._add(encoding.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Add a sound: numbers from -1 to 1."""
        self._add(encoding.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Add a text, in Markdown."""
        self._add(encoding.text(tag, text_string), global_step, walltime)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Add the operators that one forward pass of `model` on `input_to_model` runs, grouped by module."""
        from .graph import graph_def

        if input_to_model is None:
            raise ValueError("add_graph: needs input_to_model, the input to run the model on")
        self._get_file_writer().add_graph(graph_def(model, input_to_model))

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Add a precision-recall curve of binary labels and predicted probabilities."""
        self._add(encoding.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
        recall, global_step=None,
        num_thresholds=127, weights=None, walltime=None,
    ):  # fmt: skip
        """Add a precision-recall curve that is computed already."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        encoded = encoding.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(encoded, global_step, walltime)

    def add_custom_scalars(self, layout):
        """Say which scalars share a chart: {category: {chart: ["Multiline", tags] or ["Margin", three tags]}}."""
        self._add(tensors.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """Let the scalars `tags` share a chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """Show the first of three scalars between the other two."""
        if len(tags) != 3:
            raise AssertionError(f"add_custom_scalars_marginchart: three tags are needed, got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """Add points in space (batch, points, 3), with their colors and the triangles between them."""
        self._add(tensors.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Add the hyperparameters of a run and what it reached, as a run of its own."""
        parts = encoding.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for part in parts:
                writer.file_writer.add_summary(part)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Add vectors (the rows of `mat`) with labels and pictures, for TensorBoard's projector."""
        from .embedding import write

        write(
            self.log_dir,
            encoding.as_tensor(mat),
            metadata,
            label_img,
            0 if global_step is None else global_step,
            tag,
            metadata_header,
        )

    def flush(self):
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Write what waits and close the files. A later add opens a new one."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
