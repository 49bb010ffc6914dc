"""Boxes, grids of images, and picture files."""

import struct
import zlib
from io import BytesIO

import pytest

import cresset
from cresset.vision import datasets, io, ops, utils

pytest.importorskip("PIL")


def test_overlap_of_boxes():
    a, b = cresset.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1]]), cresset.tensor([[1.0, 1, 3, 3], [0, 0, 2, 2]])
    assert ops.box_iou(a, b).tolist() == [[pytest.approx(1 / 7), 1.0], [0.0, 0.25]]
    assert ops.generalized_box_iou(a[1:], b[:1]).item() == pytest.approx(-4 / 9)
    assert ops.box_area(a.to(cresset.uint8) * 100).tolist() == [40000, 10000]


@pytest.mark.parametrize("form", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("other", ["xyxy", "xywh", "cxcywh"])
def test_boxes_change_their_form_and_back(form, other):
    boxes = ops.box_convert(cresset.tensor([[1.0, 2, 5, 10]]), "xyxy", form)
    assert ops.box_convert(ops.box_convert(boxes, form, other), other, form).tolist() == boxes.tolist()


def test_the_best_boxes_stay():
    boxes = cresset.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9]])
    scores = cresset.tensor([0.8, 0.9, 0.1, 0.7])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert ops.nms(boxes, scores, 0.7).tolist() == [1, 0, 2]
    assert ops.batched_nms(boxes, scores, cresset.tensor([0, 1, 0, 1]), 0.5).tolist() == [1, 0, 2]
    assert ops.nms(boxes[:0], scores[:0], 0.5).shape == (0,)
    with pytest.raises(RuntimeError, match="same number"):
        ops.nms(boxes, scores[:2], 0.5)


def test_boxes_of_masks_and_at_borders():
    mask = cresset.zeros(1, 5, 6)
    mask[0, 1:3, 2:5] = 1
    assert ops.masks_to_boxes(mask).tolist() == [[2, 1, 4, 2]]
    assert ops.clip_boxes_to_image(cresset.tensor([[-1.0, 1, 9, 9]]), (5, 6)).tolist() == [[0, 1, 6, 5]]
    assert ops.remove_small_boxes(cresset.tensor([[0.0, 0, 1, 9], [0, 0, 2, 2]]), 2).tolist() == [1]


def test_roi_align_of_a_ramp_is_the_ramp_at_the_middles_of_the_cells():
    ramp = cresset.arange(8.0).expand(1, 1, 8, 8).contiguous().requires_grad_()
    out = ops.roi_align(ramp, [cresset.tensor([[1.0, 1, 5, 5]])], 2, sampling_ratio=2)
    assert out.shape == (1, 1, 2, 2) and out[0, 0, 0].tolist() == [2.0, 4.0]
    assert ops.roi_align(ramp, cresset.tensor([[0.0, 1, 1, 5, 5]]), 2, aligned=True)[0, 0, 0].tolist() == [1.5, 3.5]
    out.sum().backward()
    assert ramp.grad.sum().item() == pytest.approx(4.0)


def test_focal_loss_without_focus_is_cross_entropy():
    x, y = cresset.tensor([0.3, -2.0]), cresset.tensor([1.0, 0.0])
    plain = cresset.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
    assert cresset.allclose(ops.sigmoid_focal_loss(x, y, alpha=-1, gamma=0), plain)


def test_a_grid_has_its_images_in_rows():
    grid = utils.make_grid(cresset.arange(3.0).view(3, 1, 1, 1).expand(3, 1, 2, 2), nrow=2, padding=1, pad_value=9)
    assert grid.shape == (3, 7, 7)
    assert grid[0, 1].tolist() == [9, 0, 0, 9, 1, 1, 9] and grid[2, 4].tolist() == [9, 2, 2, 9, 9, 9, 9]
    assert utils.make_grid([cresset.tensor([[[1.0, 3.0]]])], normalize=True)[0].tolist() == [[0, 1]]


def test_files_of_pictures(tmp_path):
    image = (cresset.arange(3 * 4 * 5) * 4).view(3, 4, 5).to(cresset.uint8)
    io.write_png(image, tmp_path / "a.png")
    assert cresset.equal(io.read_image(tmp_path / "a.png"), image)
    assert io.read_image(str(tmp_path / "a.png"), io.ImageReadMode.GRAY).shape == (1, 4, 5)
    assert io.decode_image(io.encode_png(image), "RGB_ALPHA").shape == (4, 4, 5)
    io.write_jpeg(cresset.full((1, 8, 8), 100, dtype=cresset.uint8), tmp_path / "a.jpg")
    assert io.read_image(tmp_path / "a.jpg").unique().tolist() == [100]
    utils.save_image(image / 255, tmp_path / "b.png")
    assert cresset.equal(io.read_image(tmp_path / "b.png"), image)
    with pytest.raises(RuntimeError, match="not a picture"):
        io.decode_image(cresset.zeros(9, dtype=cresset.uint8))


def animation(*reds):
    pillow, stream = pytest.importorskip("PIL.Image"), BytesIO()
    first, *others = [pillow.new("RGB", (5, 4), (red, 0, 0)) for red in reds]
    first.save(stream, "GIF", save_all=True, append_images=others)
    return cresset.frombuffer(bytearray(stream.getvalue()), dtype=cresset.uint8)


def test_a_gif_has_a_dimension_for_its_pictures_when_there_are_several():
    assert io.decode_gif(animation(255)).shape == (3, 4, 5)
    for decode in (io.decode_gif, io.decode_image):
        several = decode(animation(255, 51, 0))
        assert several.shape == (3, 3, 4, 5) and several[:, 0, 0, 0].tolist() == [255, 51, 0]


def test_a_gif_that_ends_too_early_gets_an_error_of_ours():
    whole = animation(255, 51)
    refused = 0
    for end in range(len(whole)):
        try:
            io.decode_gif(whole[:end])
        except RuntimeError as error:  # and no other
            refused += "cannot be counted" in str(error)
    assert refused


def test_the_pictures_of_a_gif_together_are_limited(monkeypatch):
    monkeypatch.setattr("cresset.vision.pictures.FREE_PIXELS", 20)
    monkeypatch.setattr("cresset.vision.pictures.PIXELS_PER_BYTE", 0)
    assert io.decode_gif(animation(255)).shape == (3, 4, 5)
    with pytest.raises(RuntimeError, match="2 pictures of 5 x 4 pixels, where"):
        io.decode_gif(animation(255, 51))


def test_torchvisions_library_of_pictures_is_stood_in_for(tmp_path):
    cresset.ops.load_library("/env/site-packages/torchvision/image.so")
    image = (cresset.arange(3 * 4 * 5) * 4).view(3, 4, 5).to(cresset.uint8)
    data = cresset.ops.image.encode_png(image, 6)
    cresset.ops.image.write_file(str(tmp_path / "a.png"), data)
    read = cresset.ops.image.read_file(str(tmp_path / "a.png"))
    for decode in (cresset.ops.image.decode_image, cresset.ops.image.decode_png):
        assert cresset.equal(decode(read, 0, False), image)
    assert cresset.ops.image.decode_jpeg(cresset.ops.image.encode_jpeg(image, 90), 1, False).shape == (1, 4, 5)


def test_a_box_is_drawn_in_its_color():
    drawn = utils.draw_bounding_boxes(
        cresset.zeros(3, 6, 6, dtype=cresset.uint8), cresset.tensor([[1, 1, 4, 4]]), colors="red"
    )
    assert drawn[0, 1].tolist() == [0, 255, 255, 255, 255, 0] and drawn[0, 2].tolist() == [0, 255, 0, 0, 255, 0]
    assert drawn[1:].sum() == 0


class TestHostilePictures:
    def decode(self, data):
        return io.decode_image(cresset.frombuffer(bytearray(data), dtype=cresset.uint8))

    def png(self, width, height, rows=b""):
        def piece(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

        header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", header) + piece(b"IDAT", zlib.compress(rows)) + piece(b"IEND", b"")

    def test_a_picture_larger_than_its_bytes_can_hold_is_refused_before_memory_is_taken(self):
        assert self.decode(self.png(1, 1, b"\0\1\2\3")).flatten().tolist() == [1, 2, 3]
        for size in ((20_000, 20_000), (2**31 - 1, 1), (5000, 4000)):
            with pytest.raises(RuntimeError, match=r"not a picture that Pillow reads \(.*(pixels|size)"):
                self.decode(self.png(*size))

    def test_a_large_picture_of_one_color_is_read(self):
        assert self.decode(self.png(3000, 3000, bytes(9001 * 3000))).shape == (3, 3000, 3000)

    def test_formats_that_are_programs_are_not_opened(self, tmp_path):
        program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
        with pytest.raises(RuntimeError, match="not a picture"):
            self.decode(program)
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "1.png").write_bytes(program)
        with pytest.raises(RuntimeError, match="1.png: the bytes are not a picture"):
            datasets.ImageFolder(tmp_path)[0]

    def test_every_truncation_is_an_error(self):
        for data in (
            self.png(4, 4, (b"\0" + bytes(12)) * 4),
            bytes(memoryview(io.encode_jpeg(cresset.zeros(3, 8, 8, dtype=cresset.uint8)))),
        ):
            for size in range(1, len(data) - 20, 5):
                with pytest.raises(RuntimeError, match="not a picture"):
                    self.decode(data[:size])
