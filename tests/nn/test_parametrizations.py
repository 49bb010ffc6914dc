"""Weights that are functions of others: orthogonal matrices in three maps, and spectral norms of states in the older
form.
"""

import pytest

import cresset
from cresset import nn
from cresset.nn.utils import parametrizations, parametrize, remove_spectral_norm, spectral_norm


@pytest.mark.parametrize("sizes", [(4, 4), (5, 2), (2, 5)])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
def test_weight_stays_orthogonal_while_it_learns(sizes, orthogonal_map):
    layer = parametrizations.orthogonal(nn.Linear(*sizes, dtype=cresset.float64), orthogonal_map=orthogonal_map)
    optimizer = cresset.optim.SGD(layer.parameters(), lr=0.1)
    before = layer.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        (layer(cresset.ones(sizes[0], dtype=cresset.float64)) - 1).square().sum().backward()
        optimizer.step()
    weight = layer.weight.detach()
    tall = weight if weight.size(0) >= weight.size(1) else weight.T
    assert cresset.allclose(tall.T @ tall, cresset.eye(min(sizes), dtype=cresset.float64))
    assert not cresset.allclose(weight, before)


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
def test_an_orthogonal_matrix_can_be_assigned(orthogonal_map):
    layer = parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map=orthogonal_map)
    turn = cresset.tensor([[0.0, -1.0], [1.0, 0.0]])
    layer.weight = turn
    assert cresset.allclose(layer.weight, turn, atol=1e-6)
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
        layer.weight = cresset.eye(3)


def test_maps_without_a_base_cannot_be_assigned_but_householder_can():
    layer = parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        layer.weight = cresset.eye(2)
    layer = parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="householder", use_trivialization=False)
    layer.weight = cresset.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert cresset.allclose(layer.weight, cresset.tensor([[0.0, 1.0], [1.0, 0.0]]), atol=1e-6)


def test_unknown_maps_and_complex_reflections_are_refused():
    with pytest.raises(ValueError, match='has to be one of "matrix_exp", "cayley", "householder"'):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="spiral")
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(nn.Linear(2, 2, dtype=cresset.complex64), orthogonal_map="householder")


def test_a_spectral_norm_of_version_0_gets_its_missing_vector():
    layer = spectral_norm(nn.Linear(3, 2, bias=False))
    for _ in range(50):
        layer(cresset.ones(1, 3))  # the estimates settle
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    v = state.pop("weight_v")
    state["weight"] = layer.weight.detach().clone()
    state._metadata[""].pop("spectral_norm")
    other = spectral_norm(nn.Linear(3, 2, bias=False))
    other.load_state_dict(state)
    assert cresset.allclose(other.weight_v, v, atol=1e-4)
    state.pop("weight")
    with pytest.raises(RuntimeError, match='Missing key.*"weight"'):
        spectral_norm(nn.Linear(3, 2, bias=False)).load_state_dict(state)


def test_a_removed_spectral_norm_leaves_no_trace_in_the_state():
    layer = remove_spectral_norm(spectral_norm(nn.Linear(3, 2, bias=False)))
    state = layer.state_dict()
    assert list(state) == ["weight"] and state._metadata[""] == {"version": 1}
    layer.load_state_dict(state)


class Half(nn.Module):
    def forward(self, weight):
        return weight[:1]


class Doubled(nn.Module):
    def forward(self, row):
        return row.repeat(2, 1)

    def right_inverse(self, weight):
        return weight[:1]


def test_a_parametrization_may_not_change_the_shape_unless_it_is_called_unsafe():
    register = nn.utils.parametrize.register_parametrization
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        register(layer, "weight", Half())
    assert type(layer) is nn.Linear and layer.weight.shape == (2, 2)
    assert register(layer, "weight", Half(), unsafe=True).weight.shape == (1, 2)
    layer = register(nn.Linear(2, 2), "weight", Doubled())
    assert layer.weight.shape == (2, 2) and layer.parametrizations.weight.original.shape == (1, 2)


class Of(nn.Module):
    """A parametrization of two functions."""

    def __init__(self, forward, right_inverse=None):
        super().__init__()
        self.function = forward
        if right_inverse is not None:
            self.right_inverse = right_inverse

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "inverse", "phrase"),
    [
        (lambda x: 2, None, "must return a tensor"),
        (lambda x: x.bool(), None, "may not change the dtype"),
        (lambda x: x[:-1], None, "may not change the shape"),
        (lambda x: x.float(), lambda x: x.to("meta"), "may not change the device"),
    ],
)
def test_a_parametrization_gives_a_tensor_of_the_same_kind(function, inverse, phrase):
    layer = nn.Linear(3, 4)
    with pytest.raises(ValueError, match=phrase):
        nn.utils.parametrize.register_parametrization(layer, "weight", Of(function, inverse))
    assert not nn.utils.parametrize.is_parametrized(layer)


@pytest.mark.parametrize(
    ("function", "inverse", "phrase"),
    [
        (lambda x: (x, x), None, "must return a tensor"),
        (lambda x: x, lambda x: (x, x), "right_inverse must return a tensor"),
        (lambda x: x, lambda x: x.bool(), "must have the same dtype"),
        (lambda x: x, lambda x: x[:-1], "must have the same shape"),
    ],
)
def test_so_does_one_on_top_of_another(function, inverse, phrase):
    layer = nn.Linear(3, 4)
    nn.utils.parametrize.register_parametrization(layer, "weight", Of(lambda x: x))
    with pytest.raises(ValueError, match=phrase):
        nn.utils.parametrize.register_parametrization(layer, "weight", Of(function, inverse))
    assert len(layer.parametrizations.weight) == 1


def test_the_spectral_norm_of_complex_weights():
    layer = nn.Linear(2, 2, dtype=cresset.complex64)
    weights = cresset.tensor([3 + 4j, 1j])
    with cresset.no_grad():
        layer.weight = nn.Parameter(cresset.diag(weights))
        nn.utils.parametrizations.spectral_norm(layer)
        cresset.testing.assert_close(layer.weight, cresset.diag(weights / 5))


def test_parametrizations_move_to_a_layer_that_imitates_quantization():
    layer = nn.Linear(2, 2)
    nn.utils.parametrize.register_parametrization(layer, "weight", Of(lambda x: x + 1))
    to = cresset.ao.nn.qat.Linear(2, 2, qconfig=cresset.ao.quantization.get_default_qat_qconfig())
    nn.utils.parametrize.transfer_parametrizations_and_params(layer, to)
    assert to.parametrizations.weight.original.tolist() == layer.parametrizations.weight.original.tolist()
    assert cresset.ao.nn.qat.Conv2d(1, 1, 1, qconfig=to.qconfig)(cresset.ones(1, 1, 2, 2)).shape == (1, 1, 2, 2)
    with pytest.raises(AssertionError, match="qconfig must be provided"):
        cresset.ao.nn.qat.Linear(2, 2)


class Two(cresset.Tensor):
    """A tensor that is two others."""

    @staticmethod
    def __new__(cls, a, b):
        return cresset.Tensor._make_wrapper_subclass(
            cls, a.size(), strides=a.stride(), dtype=a.dtype, requires_grad=a.requires_grad
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
        return Two(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        def one(name):
            return [getattr(arg, name) if isinstance(arg, Two) else arg for arg in args]

        return Two(func(*one("a"), **(kwargs or {})), func(*one("b"), **(kwargs or {})))


class AsTwo(nn.Module):
    """The tensor twice; assigned, an original of that class, too."""

    def forward(self, x):
        return x if isinstance(x, Two) else Two(x, x)

    def right_inverse(self, x):
        return x if isinstance(x, Two) else Two(x, x)


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_an_original_takes_the_class_that_right_inverse_gives(kind):
    model = nn.Module()
    model.value = kind(cresset.tensor([1.0, 2.0]))
    tensor = model.value
    parametrize.register_parametrization(model, "value", AsTwo())
    original = model.parametrizations.value.original
    assert original is tensor and type(original) is Two and original.a.tolist() == [1.0, 2.0]
    assert isinstance(original, nn.Parameter) == (kind is nn.Parameter)
    parametrize.remove_parametrizations(model, "value")
    assert model.value is tensor and type(tensor) is Two and tensor.b.tolist() == [1.0, 2.0]


def test_the_parametrized_spectral_norm_improves_the_left_vector_first():
    layer = nn.Linear(2, 2, bias=False)
    layer.weight.data = cresset.tensor([[0.0, 2.0], [1.0, 0.0]])
    norm = parametrizations.spectral_norm(layer).parametrizations.weight[0]
    norm._u.copy_(cresset.tensor([0.6, 0.8]))
    norm._v.copy_(cresset.tensor([1.0, 0.0]))
    assert layer.weight.tolist() == [[0.0, 2.0], [1.0, 0.0]]  # u = W v, v = W' u, and their singular value is 1
    assert norm._u.tolist() == [0.0, 1.0] and norm._v.tolist() == [1.0, 0.0]
