"""Datasets read the files they are published in."""

import gzip
import hashlib
import os
import pickle
import struct
import time

import pytest

import cresset
from cresset.vision import datasets
from cresset.vision.datasets import download
from cresset.vision.datasets.cifar import read_pickle
from cresset.vision.datasets.mnist import read_idx
from cresset.vision.transforms import functional as F

pytest.importorskip("PIL")


def idx(numbers, kind=8, form=">{}B"):
    flat = numbers.flatten().tolist()
    return (
        bytes([0, 0, kind, numbers.ndim])
        + struct.pack(f">{numbers.ndim}I", *numbers.shape)
        + struct.pack(form.format(len(flat)), *flat)
    )


def test_idx_files_of_every_width(tmp_path):
    numbers = cresset.arange(6).view(2, 3) + 1000
    (tmp_path / "a").write_bytes(idx(numbers, 12, ">{}i"))
    assert cresset.equal(read_idx(tmp_path / "a"), numbers.int())
    (tmp_path / "b.gz").write_bytes(gzip.compress(idx(numbers.double() / 8, 14, ">{}d")))
    assert cresset.equal(read_idx(tmp_path / "b.gz"), numbers.double() / 8)


@pytest.mark.parametrize(
    "data, words",
    [
        (b"PK\3\4", "not an idx file"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 9]), "9 bytes"),
        (bytes([0, 0, 8, 2]), "ends inside"),
    ],
)
def test_a_damaged_idx_file_is_refused(tmp_path, data, words):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ValueError, match=words):
        read_idx(tmp_path / "a")


@pytest.mark.parametrize("packed", [False, True])
def test_mnist(tmp_path, packed):
    images, labels = cresset.arange(2 * 28 * 28).view(2, 28, 28) % 256, cresset.tensor([7, 3])
    files, resources = {"t10k-images-idx3-ubyte": idx(images), "t10k-labels-idx1-ubyte": idx(labels)}, []
    folder = tmp_path / "Tiny" / "raw"
    folder.mkdir(parents=True)
    for name, data in files.items():
        data = gzip.compress(data) if packed else data
        (folder / (name + ".gz" if packed else name)).write_bytes(data)
        resources.append((name + ".gz", hashlib.md5(data).hexdigest()))

    class Tiny(datasets.MNIST):
        pass

    Tiny.resources = [*datasets.MNIST.resources[:2], *resources]
    made = Tiny(tmp_path, train=False)
    picture, label = made[1]
    assert len(made) == 2 and label == 3 and picture.mode == "L"
    assert F.pil_to_tensor(picture)[0].tolist() == images[1].tolist()
    with pytest.raises(RuntimeError, match="download=True"):
        Tiny(tmp_path, train=True)
    if packed:
        (folder / resources[0][0]).write_bytes(b"other")
        with pytest.raises(RuntimeError, match="damaged"):
            Tiny(tmp_path, train=False)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_cifar_reads_pickles_as_data(tmp_path, protocol):
    numpy = pytest.importorskip("numpy")
    pixels = numpy.random.default_rng(0).integers(0, 256, (3, 3072), dtype=numpy.uint8)
    (tmp_path / "batch").write_bytes(pickle.dumps({"data": pixels, "fine_labels": [1, 2, 3]}, protocol=protocol))
    made = read_pickle(tmp_path / "batch")
    assert (made["data"] == pixels).all() and made["fine_labels"] == [1, 2, 3]


def test_cifar_runs_no_code_of_a_file(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    (tmp_path / "batch").write_bytes(pickle.dumps({"data": Evil()}))
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        read_pickle(tmp_path / "batch")
    assert not (tmp_path / "ran").exists()


def test_cifar_from_an_archive(tmp_path):
    numpy = pytest.importorskip("numpy")
    import tarfile

    base = tmp_path / "cifar-100-python"
    base.mkdir()
    pixels = numpy.arange(2 * 3072, dtype=numpy.uint8).reshape(2, 3072)
    contents = {
        "train": {"data": pixels, "fine_labels": [1, 0]},
        "test": {"data": pixels[:1], "fine_labels": [1]},
        "meta": {"fine_label_names": ["apple", "sea"]},
    }
    sums = {}
    for name, value in contents.items():
        (base / name).write_bytes(pickle.dumps(value, protocol=2))
        sums[name] = hashlib.md5((base / name).read_bytes()).hexdigest()
    with tarfile.open(tmp_path / "cifar-100-python.tar.gz", "w:gz") as archive:
        archive.add(base, "cifar-100-python")
    for name in contents:
        (base / name).unlink()

    class Tiny(datasets.CIFAR100):
        tgz_md5 = hashlib.md5((tmp_path / "cifar-100-python.tar.gz").read_bytes()).hexdigest()
        train_list, test_list = [["train", sums["train"]]], [["test", sums["test"]]]
        meta = {"filename": "meta", "key": "fine_label_names", "md5": sums["meta"]}

    with pytest.raises(RuntimeError, match="not found or corrupted"):
        Tiny(tmp_path)
    made = Tiny(tmp_path, download=True)
    picture, label = made[0]
    assert len(made) == 2 and label == 1 and made.classes == ["apple", "sea"] and made.data.shape == (2, 32, 32, 3)
    assert F.pil_to_tensor(picture).flatten().tolist() == pixels[0].tolist()


def test_without_a_network_the_error_says_what_to_put_where(tmp_path):
    start = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        download.fetch("MNIST", ["http://127.0.0.1:9/file.gz"], str(tmp_path), "file.gz", "0123")
    for words in ("MNIST", "http://127.0.0.1:9/file.gz", "md5 0123", str(tmp_path / "file.gz")):
        assert words in str(caught.value)
    assert time.monotonic() - start < 10 and os.listdir(tmp_path) == []


def test_image_folder(tmp_path):
    for name in ("dogs", "cats"):
        (tmp_path / name / "deep").mkdir(parents=True)
        F.to_pil_image(cresset.zeros(3, 2, 2)).save(tmp_path / name / "deep" / "1.png")
        (tmp_path / name / "notes.txt").write_text("no picture")
    made = datasets.ImageFolder(str(tmp_path))
    assert made.classes == ["cats", "dogs"] and made.targets == [0, 1] and len(made) == 2
    assert made[0][0].mode == "RGB"
    assert repr(made).startswith("Dataset ImageFolder\n    Number of datapoints: 2\n    Root location: ")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty"):
        datasets.ImageFolder(str(tmp_path))
    assert len(datasets.ImageFolder(str(tmp_path), allow_empty=True)) == 2


def test_fake_data_is_the_same_each_time_and_leaves_the_generator_alone():
    made = datasets.FakeData(size=3, image_size=(3, 4, 4))
    cresset.manual_seed(0)
    first = F.pil_to_tensor(made[1][0])
    after = cresset.rand(1)
    cresset.manual_seed(0)
    assert cresset.equal(after, cresset.rand(1)) and cresset.equal(first, F.pil_to_tensor(made[1][0]))
    with pytest.raises(IndexError, match="3 samples"):
        made[3]


def test_celeba(tmp_path):
    base = tmp_path / "celeba"
    (base / "img_align_celeba").mkdir(parents=True)
    names = ["000001.jpg", "000002.jpg"]
    for name in names:
        F.to_pil_image(cresset.zeros(3, 2, 2)).save(base / "img_align_celeba" / name)
    table = lambda columns, rows: f"2\n{columns}\n" + "\n".join(f"{name}  {row}" for name, row in zip(names, rows))
    (base / "list_eval_partition.txt").write_text("000001.jpg 0\n000002.jpg 2\n")
    (base / "identity_CelebA.txt").write_text("000001.jpg 5\n000002.jpg 6\n")
    (base / "list_attr_celeba.txt").write_text(table("Bald Young", ["-1  1", " 1 -1"]))
    (base / "list_bbox_celeba.txt").write_text(table("image_id x_1 y_1 width height", ["1 2 3 4", "5 6 7 8"]))
    with pytest.raises(RuntimeError, match="landmarks"):
        datasets.CelebA(str(tmp_path))
    (base / "list_landmarks_align_celeba.txt").write_text(table("lefteye_x lefteye_y", ["1 2", "3 4"]))
    made = datasets.CelebA(str(tmp_path), split="test", target_type=["attr", "identity"])
    picture, (attributes, identity) = made[0]
    assert len(made) == 1 and picture.size == (2, 2) and attributes.tolist() == [1, 0] and identity == 6
    assert made.attr_names == ["Bald", "Young"]


def test_imagenet(tmp_path):
    for split, wnid in (("val", "n01"), ("val", "n02")):
        (tmp_path / split / wnid).mkdir(parents=True)
        F.to_pil_image(cresset.zeros(3, 2, 2)).save(tmp_path / split / wnid / "a.png")
    with pytest.raises(RuntimeError, match="image-net.org"):
        datasets.ImageNet(str(tmp_path), "val")
    cresset.save(({"n01": ("tench", "Tinca"), "n02": ("goldfish",)}, ["n01", "n02"]), tmp_path / "meta.bin")
    made = datasets.ImageNet(str(tmp_path), "val")
    assert made.classes == [("tench", "Tinca"), ("goldfish",)] and made.class_to_idx["Tinca"] == 0 and made[1][1] == 1
