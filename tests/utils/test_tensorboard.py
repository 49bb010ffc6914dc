"""Event files: read back by a small reader, and by TensorBoard itself where it is installed."""

import struct
import zlib

import pytest

import cresset
from cresset import nn
from cresset.utils.tensorboard import SummaryWriter, encoding, summary, tensors
from cresset.utils.tensorboard.records import masked_crc32c


def fields(data):
    """(number, value) of a protobuf message: integers, or raw bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = {0: None, 1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
        if size is None:
            yield key >> 3, varint()
        else:
            yield key >> 3, data[at : at + size]
            at += size


def events(folder):
    """The events of all files below a folder, as dictionaries from field number to value."""
    for path in sorted(folder.rglob("*tfevents*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            body = data[at + 12 : at + 12 + size]
            assert struct.unpack_from("<I", data, at + 8)[0] == masked_crc32c(data[at : at + 8])
            assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked_crc32c(body)
            at += 16 + size
            yield dict(fields(body))


def values(folder):
    """{tag: [(step, fields of the value)]}"""
    found = {}
    for event in events(folder):
        for _, value in fields(event.get(5, b"")):
            one = dict(fields(value))
            found.setdefault(one[1].decode(), []).append((event.get(2, 0), one))
    return found


def test_checksum_of_a_known_text():
    crc = 0xE3069283  # CRC-32C of "123456789"
    assert masked_crc32c(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", cresset.tensor(0.5), 3)
        writer.add_scalars("acc", {"train": 1.0, "test": 0.25}, 4)
    found = values(tmp_path)
    assert [(step, struct.unpack("<f", one[2])[0]) for step, one in found["loss"]] == [(3, 0.5)]
    assert sorted(struct.unpack("<f", one[2])[0] for _, one in found["acc"]) == [0.25, 1.0]
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"acc_train", "acc_test"}
    with pytest.raises(AssertionError, match="scalar should be 0D"):
        SummaryWriter(tmp_path).add_scalar("loss", cresset.ones(2))


def test_histogram_counts(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", cresset.tensor([0.5, 1.5, 1.6, 3.0]), 1, bins=[0, 1, 2, 3])
    ((_, one),) = values(tmp_path)["h"]
    histogram = dict(fields(one[5]))
    assert struct.unpack("<4d", histogram[6]) == (0, 1, 2, 3) and struct.unpack("<4d", histogram[7]) == (0, 1, 2, 1)
    assert struct.unpack("<d", histogram[3]) == (4,)


def test_image_is_a_png(tmp_path):
    pixels = cresset.tensor([[[255, 0]], [[0, 255]], [[0, 0]]], dtype=cresset.uint8)  # a red and a green pixel
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", pixels, 2)
        writer.add_images("many", cresset.rand(3, 1, 4, 5), 2)
    ((_, one),) = values(tmp_path)["i"]
    image = dict(fields(one[4]))
    data = image[4]
    at = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[at - 4 : at])
    assert (image[1], image[2]) == (1, 2) and zlib.decompress(data[at + 4 : at + 4 + size]) == bytes(
        [0, 255, 0, 0, 0, 255, 0]
    )
    ((_, many),) = values(tmp_path)["many"]
    assert dict(fields(many[4]))[2] == 15
    with pytest.raises(AssertionError, match="do not fit together"):
        encoding.image("x", cresset.rand(2, 2), dataformats="CHW")


def test_graph_text_and_embedding(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), cresset.ones(1, 2))
        writer.add_text("note", "hello", 1)
        writer.add_embedding(cresset.tensor([[1.0, 2.0]]), metadata=["a"], label_img=cresset.rand(1, 3, 2, 2))
    (graph,) = [event[4] for event in events(tmp_path) if 4 in event]
    nodes = [[(n, v) for n, v in fields(body)] for number, body in fields(graph) if number == 1]
    by_name = {dict(node)[1].decode(): [v.decode() for n, v in node if n == 3] for node in nodes}
    relu = next(name for name in by_name if "relu" in name)
    assert relu.startswith("Sequential/ReLU[1]") and any("linear" in name for name in by_name[relu])
    assert by_name["output/output.1"] == [relu]
    assert "note/text_summary" in values(tmp_path)
    assert (tmp_path / "00000/default/tensors.tsv").read_text() == "1.0\t2.0\n"


def test_a_closed_writer_opens_a_new_file(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.close()
    writer.add_scalar("x", 1.0)
    writer.close()
    assert len(list(tmp_path.glob("*tfevents*"))) == 2


def test_a_forgotten_writer_loses_nothing(tmp_path):
    SummaryWriter(tmp_path).add_scalar("x", 1.0)
    assert "x" in values(tmp_path)


def test_tensorboard_reads_it(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    hparams = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.25, 7)
        writer.add_histogram("h", cresset.linspace(-1, 1, 50), 1)
        writer.add_image("i", cresset.rand(3, 4, 5), 1)
        writer.add_text("t", "hello", 1)
        writer.add_audio("a", cresset.zeros(100), 1)
        writer.add_pr_curve("pr", cresset.tensor([1, 0, 1]), cresset.tensor([0.9, 0.2, 0.6]), 1, num_thresholds=11)
        writer.add_graph(nn.Linear(2, 3), cresset.ones(1, 2))
        writer.add_hparams({"lr": 0.1, "name": "adam", "big": True}, {"acc": 0.5}, run_name="trial")
    read = accumulator.EventAccumulator(str(tmp_path))
    read.Reload()
    tags = read.Tags()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(7, 0.25)]
    assert read.Histograms("h")[0].histogram_value.num == 50
    assert (read.Images("i")[0].height, read.Images("i")[0].width) == (4, 5)
    assert read.Audio("a")[0].length_frames == 100 and tags["graph"]
    assert read.Tensors("t/text_summary")[0].tensor_proto.string_val == [b"hello"]
    assert len(read.Tensors("pr")[0].tensor_proto.float_val) == 66
    assert any("linear" in node.name for node in read.Graph().node)
    trial = accumulator.EventAccumulator(str(tmp_path / "trial"))
    trial.Reload()
    content = trial.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    started = hparams.HParamsPluginData.FromString(content).session_start_info.hparams
    assert started["lr"].number_value == 0.1 and started["name"].string_value == "adam" and started["big"].bool_value
    experiment = hparams.HParamsPluginData.FromString(
        trial.SummaryMetadata("_hparams_/experiment").plugin_data.content
    ).experiment
    assert [info.name for info in experiment.hparam_infos] == ["lr", "name", "big"] and experiment.metric_infos[
        0
    ].name.tag == "acc"


def test_tensors_keep_their_dtype(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_tensor("whole", cresset.tensor([1, 2], dtype=cresset.int32))
        writer.add_tensor("complex", cresset.tensor([1 + 2j]))
    found = values(tmp_path)
    whole, pairs = (dict(fields(found[tag][0][1][8])) for tag in ("whole", "complex"))
    assert (whole[1], whole[7]) == (3, b"\x01\x02")  # DT_INT32, int_val
    assert (pairs[1], pairs[9]) == (8, struct.pack("<2f", 1.0, 2.0))  # DT_COMPLEX64, scomplex_val


def test_bytes_are_pixels_already_and_floats_go_to_one():
    assert summary._calc_scale_factor(cresset.ones(1, dtype=cresset.uint8)) == 1
    assert summary._calc_scale_factor(cresset.ones(1)) == 255


def test_half_precision_is_kept_as_its_float32_bits():
    assert summary.int_to_half(summary.half_to_int(0.5)) == 0.5
    with pytest.raises(ValueError, match="unsupported tensor dtype torch.float8_e5m2"):
        tensors.tensor_proto("tag", cresset.zeros(1, dtype=cresset.float8_e5m2))


def test_meshes_charts_and_boxes(tmp_path):
    points, triangles = cresset.zeros(1, 3, 3), cresset.tensor([[[0, 1, 2]]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("mesh", points, faces=triangles)
        writer.add_custom_scalars_multilinechart(["a", "b"], title="both")
        with pytest.raises(AssertionError, match="three tags"):
            writer.add_custom_scalars_marginchart(["a", "b"])
    found = values(tmp_path)
    assert {"mesh_VERTEX", "mesh_FACE", "custom_scalars__config__"} == set(found)
    assert b"both" in found["custom_scalars__config__"][0][1][8]


def test_boxes_are_drawn_in_red_and_images_are_resized(tmp_path):
    pytest.importorskip("PIL")
    black = cresset.zeros(3, 8, 8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("box", black, cresset.tensor([[2, 2, 5, 5]]), rescale=2)
    image = dict(fields(values(tmp_path)["box"][0][1][4]))
    assert (image[1], image[2]) == (16, 16)
    boxed = dict(fields(next(v for n, v in fields(encoding.image_boxes("x", black, [[2, 2, 5, 5]])))))
    assert boxed[1] == b"x"


def test_summaries_are_tensorboards_objects():
    pytest.importorskip("tensorboard")
    made = summary.scalar("loss", 0.5)
    assert (made.value[0].tag, made.value[0].simple_value) == ("loss", 0.5)


def test_pictures_and_films_in_tensorboards_order():
    numpy = pytest.importorskip("numpy")
    from cresset.utils.tensorboard import _convert_np, _utils

    pictures = numpy.zeros((16, 3, 4, 5), numpy.uint8)
    assert _utils.convert_to_HWC(pictures, "NCHW").shape == (8, 40, 3)
    assert _utils.make_grid(pictures).shape == (3, 8, 40)
    film = numpy.random.rand(3, 2, 1, 4, 5)
    prepared = _utils._prepare_video(film)
    assert prepared.shape == (2, 8, 10, 1)
    assert prepared[1].sum() == pytest.approx(film[:, 1].sum())
    assert _convert_np.make_np(cresset.ones(2, dtype=cresset.bfloat16)).tolist() == [1.0, 1.0]
    assert _convert_np.make_np(3).shape == (1,)
    with pytest.raises(NotImplementedError):
        _convert_np.make_np({})
    with pytest.raises(NotImplementedError):
        _convert_np.make_np([1.0])


def test_the_values_of_a_histogram_are_a_tensor_or_an_array():
    with pytest.raises(NotImplementedError, match="as a tensor or an array, got a list"):
        summary.histogram("h", [1, 2], "auto")
