"""Transforms of pictures and tensors."""

import importlib
import subprocess
import sys

import pytest

import cresset
from cresset.vision import transforms as t

Image = pytest.importorskip("PIL.Image")
F = t.functional


def ramp(height=4, width=6):
    """Red counts columns, green counts rows."""
    rows = cresset.arange(height, dtype=cresset.uint8)[:, None].expand(height, width)
    columns = cresset.arange(width, dtype=cresset.uint8).expand(height, width)
    return cresset.stack([columns, rows, cresset.zeros_like(rows)])


def both(image):
    return {"tensor": image, "picture": F.to_pil_image(image)}


def numbers(image):
    return image.tolist() if isinstance(image, cresset.Tensor) else F.pil_to_tensor(image).tolist()


@pytest.mark.parametrize("kind", ["tensor", "picture"])
class TestPicturesAndTensorsAlike:
    """What gives the same bytes for a picture and for a tensor of bytes."""

    def test_a_picture_and_back_is_the_same(self, kind):
        assert numbers(both(ramp())[kind]) == ramp().tolist()

    def test_flips(self, kind):
        image = both(ramp())[kind]
        assert numbers(F.hflip(image)) == ramp().flip(-1).tolist()
        assert numbers(F.vflip(image)) == ramp().flip(-2).tolist()

    def test_a_crop_outside_is_black(self, kind):
        made = numbers(F.crop(both(ramp() + 1)[kind], -1, 4, 2, 3))
        assert made[0] == [[0, 0, 0], [5, 6, 0]]

    def test_the_middle(self, kind):
        assert numbers(t.CenterCrop(2)(both(ramp())[kind])) == ramp()[:, 1:3, 2:4].tolist()
        assert len(numbers(t.CenterCrop((8, 2))(both(ramp())[kind]))[0]) == 8

    @pytest.mark.parametrize(
        "mode, row",
        [
            ("constant", [9, 9, 0, 1, 2, 3, 4, 5, 9]),
            ("edge", [0, 0, 0, 1, 2, 3, 4, 5, 5]),
            ("reflect", [2, 1, 0, 1, 2, 3, 4, 5, 4]),
            ("symmetric", [1, 0, 0, 1, 2, 3, 4, 5, 5]),
        ],
    )
    def test_borders(self, kind, mode, row):
        assert numbers(t.Pad((2, 0, 1, 0), fill=9, padding_mode=mode)(both(ramp())[kind]))[0][0] == row

    def test_a_quarter_turn(self, kind):
        square = ramp(4, 4)
        assert numbers(t.RandomRotation((90, 90))(both(square)[kind])) == square.rot90(1, (1, 2)).tolist()

    def test_an_affine_map_that_moves_one_to_the_right(self, kind):
        made = numbers(F.affine(both(ramp())[kind], 0, (1, 0), 1.0, 0))
        assert made[0][0] == [0, 0, 1, 2, 3, 4]

    def test_inverted_colors(self, kind):
        assert numbers(F.invert(both(ramp())[kind])) == (255 - ramp()).tolist()

    def test_brightness_by_two(self, kind):
        assert numbers(F.adjust_brightness(both(ramp())[kind], 2)) == (2 * ramp()).tolist()

    def test_gray_of_gray_is_the_same(self, kind):
        gray = cresset.full((3, 2, 2), 100, dtype=cresset.uint8)
        assert numbers(t.Grayscale(3)(both(gray)[kind])) in (gray.tolist(), (gray - 1).tolist())

    def test_five_and_ten_crops(self, kind):
        five = [numbers(crop) for crop in t.FiveCrop(2)(both(ramp())[kind])]
        assert [crop[0][0][0] for crop in five] == [0, 4, 0, 4, 2]
        assert len(t.TenCrop(2)(both(ramp())[kind])) == 10

    @pytest.mark.parametrize(
        "transform",
        [
            t.RandomCrop(4, padding=2), t.RandomResizedCrop(3), t.RandomHorizontalFlip(), t.RandomRotation(30),
            t.RandomAffine(9, (0.5, 0.5), (0.5, 2), 9),
            t.ColorJitter(0.5, 0.5, 0.5, 0.5), t.GaussianBlur(3), t.RandomPerspective(),
            t.RandomApply([t.CenterCrop(2)]), t.RandomGrayscale(0.5),
            t.RandomOrder([t.CenterCrop(3), t.Pad(1)]), t.RandomChoice([t.CenterCrop(3), t.Pad(1)]),
        ],
        ids=lambda transform: type(transform).__name__,
    )  # fmt: skip
    def test_random_ones_repeat_with_the_seed_and_vary_without(self, kind, transform):
        image = both(ramp(8, 8) * 20)[kind]
        cresset.manual_seed(1)
        first = [numbers(transform(image)) for _ in range(12)]
        cresset.manual_seed(1)
        assert [numbers(transform(image)) for _ in range(12)] == first
        assert any(made != first[0] for made in first)


def test_bytes_become_numbers_from_zero_to_one():
    made = t.ToTensor()(F.to_pil_image(cresset.tensor([[[0, 51, 255]]], dtype=cresset.uint8)))
    assert made.shape == (1, 1, 3) and made.dtype == cresset.float32
    assert made.flatten().tolist() == pytest.approx([0, 0.2, 1])


def test_other_modes_keep_their_numbers():
    assert F.pil_to_tensor(Image.new("I", (2, 1), 70000)).tolist() == [[[70000, 70000]]]
    assert F.pil_to_tensor(Image.new("F", (1, 1), 0.5)).tolist() == [[[0.5]]]
    assert F.pil_to_tensor(Image.new("I;16", (1, 1), 40000)).tolist() == [[[40000]]]
    assert F.pil_to_tensor(Image.new("1", (9, 1), 1)).tolist() == [[[True] * 9]]
    assert F.to_pil_image(cresset.zeros(1, 2, 2, dtype=cresset.int32)).mode == "I"
    assert F.to_pil_image(cresset.zeros(4, 2, 2)).mode == "RGBA"


@pytest.mark.parametrize(
    "size, max_size, expected", [(2, None, (2, 3)), ((5, 4), None, (5, 4)), (4, 5, (3, 5)), ([2], None, (2, 3))]
)
def test_resize_to_a_size_or_a_shorter_side(size, max_size, expected):
    for image in both(ramp(4, 6)).values():
        assert tuple(F.get_dimensions(t.Resize(size, max_size=max_size)(image))[1:]) == expected


def test_resizing_a_flat_image_keeps_its_color():
    flat = cresset.full((3, 9, 7), 77, dtype=cresset.uint8)
    for mode in (t.InterpolationMode.BILINEAR, t.InterpolationMode.BICUBIC, t.InterpolationMode.NEAREST):
        assert t.Resize((4, 5), mode)(flat).unique().tolist() == [77]


def test_white_stays_white_in_every_dtype():
    white = cresset.full((1, 1, 1), 255, dtype=cresset.uint8)
    assert F.convert_image_dtype(white, cresset.float64).item() == 1
    assert F.convert_image_dtype(cresset.ones(1), cresset.uint8).item() == 255
    assert F.convert_image_dtype(white, cresset.int16).item() == 255 * 128
    assert F.convert_image_dtype(F.convert_image_dtype(white, cresset.int32), cresset.uint8).item() == 255
    with pytest.raises(RuntimeError, match="not safe"):
        F.convert_image_dtype(cresset.ones(1), cresset.int32)


def test_a_full_turn_of_hue_comes_back_and_half_a_turn_is_the_opposite():
    red = cresset.tensor([255, 0, 0], dtype=cresset.uint8).view(3, 1, 1)
    assert F.adjust_hue(red, 0.5).flatten().tolist() == [0, 255, 255]
    assert F.adjust_hue(red, 0.0).flatten().tolist() == [255, 0, 0]


def test_erasing_writes_one_rectangle():
    cresset.manual_seed(0)
    made = t.RandomErasing(p=1.0, value=7)(cresset.zeros(3, 10, 10))
    rows, columns = (made[0] == 7).any(1).sum(), (made[0] == 7).any(0).sum()
    assert (made == 7).sum() == 3 * rows * columns > 0


def test_a_batch_is_a_batch_of_images():
    batch = cresset.rand(2, 3, 8, 8)
    assert cresset.equal(F.resize(batch, [4, 4])[1], F.resize(batch[1], [4, 4]))
    assert cresset.equal(F.gaussian_blur(batch, 3)[1], F.gaussian_blur(batch[1], 3))


@pytest.mark.parametrize(
    "transform, text",
    [
        (t.Resize(3), "Resize(size=3, interpolation=bilinear, max_size=None, antialias=True)"),
        (t.RandomCrop(32, padding=4), "RandomCrop(size=(32, 32), padding=4)"),
        (t.Normalize([0.5], [0.2]), "Normalize(mean=[0.5], std=[0.2])"),
        (t.Compose([t.ToTensor(), t.CenterCrop(2)]), "Compose(\n    ToTensor()\n    CenterCrop(size=(2, 2))\n)"),
        (t.RandomRotation(10), "RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0)"),
    ],
)
def test_representations(transform, text):
    assert repr(transform) == text


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: t.ToTensor()([1]), TypeError, "expected a PIL image or a NumPy array, got list"),
        (lambda: t.Normalize([0.5], [0.0])(cresset.ones(1, 2, 2)), ValueError, "std is zero"),
        (lambda: t.Normalize([0.5], [0.1])(ramp()), TypeError, "floating point"),
        (lambda: t.RandomCrop(9)(ramp()), ValueError, r"\(9, 9\) is larger than input image size \(4, 6\)"),
        (lambda: t.Resize(4, max_size=4)(ramp()), ValueError, "max_size = 4"),
        (lambda: F.adjust_hue(ramp(), 0.7), ValueError, "0.7"),
        (lambda: F.gaussian_blur(ramp(), 4), ValueError, "odd"),
        (lambda: F.pad(ramp(), [1, 2, 3]), ValueError, "1, 2 or 4"),
        (lambda: F.to_pil_image(cresset.zeros(5, 2, 2)), ValueError, "at most 4 channels"),
        (lambda: t.RandomHorizontalFlip(p=2), ValueError, "probability"),
        (lambda: F.resize(ramp(), 3, "bilinear"), TypeError, "InterpolationMode"),
        (lambda: t.RandomErasing(1.0)(F.to_pil_image(ramp())), TypeError, "expected a tensor"),
        (lambda: t.ColorJitter(hue=0.6), ValueError, "hue"),
    ],
)
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


class TestV2:
    def test_a_sample_is_changed_as_a_whole(self):
        v2 = t.v2
        pipe = v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(p=1.0), v2.ToDtype(cresset.float32, scale=True)])
        sample = pipe({"image": F.to_pil_image(ramp()), "label": 3})
        assert sample["label"] == 3
        assert cresset.equal(sample["image"], ramp().flip(-1) / 255)

    def test_two_pictures_get_the_same_crop(self):
        cresset.manual_seed(0)
        first, second = t.v2.RandomCrop(2)(F.to_pil_image(ramp()), F.to_pil_image(ramp()))
        assert numbers(first) == numbers(second)

    def test_nothing_to_change_is_an_error(self):
        with pytest.raises(TypeError, match="got none"):
            t.v2.CenterCrop(2)(3, "text")

    def test_its_functions_are_a_module_with_functions_of_its_own(self):
        functional = importlib.import_module("cresset.vision.transforms.v2.functional")
        assert functional is t.v2.functional and functional.resize is F.resize
        image = functional.to_image(F.to_pil_image(ramp()))
        assert cresset.equal(image, ramp()) and functional.get_size(image) == list(ramp().shape[1:])
        assert cresset.equal(functional.to_dtype_image(image, cresset.float32, scale=True), ramp() / 255)
        assert functional.to_dtype(image).max() == ramp().max() and functional.to_dtype("label") == "label"
        gray = image[:1]
        assert cresset.equal(functional.grayscale_to_rgb(gray), gray.expand(3, -1, -1))
        assert functional.grayscale_to_rgb(F.to_pil_image(gray)).mode == "RGB"
        assert functional.to_image(gray[0]).shape == gray.shape
        with pytest.raises(TypeError, match="to_image: expected a tensor, a NumPy array or a PIL image, got int"):
            functional.to_image(3)


def test_without_pillow_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "import importlib.util; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'PIL' else real(name, *rest)\n"
        "import cresset; from cresset.vision import transforms as t\n"
        "print(t.CenterCrop(2)(cresset.ones(1, 4, 4)).shape)\n"
        "try: t.ToPILImage()(cresset.ones(1, 2, 2))\n"
        "except ImportError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "torch.Size([1, 2, 2])" in said and "pip install pillow" in said
