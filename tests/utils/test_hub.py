"""torch.hub with folders and files: no network is needed."""

import hashlib

import pytest

import cresset
from cresset import hub

HUBCONF = '''
dependencies = ["json"]

def doubled(x, plus=0):
    """Two times x."""
    return 2 * x + plus
'''


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    return tmp_path


def test_local_repository(repository):
    assert hub.load(repository, "doubled", 3, plus=1, source="local") == 7
    with pytest.raises(RuntimeError, match="Cannot find callable tripled"):
        hub.load(repository, "tripled", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(repository, "doubled", source="tape")
    (repository / "hubconf.py").write_text("dependencies = ['no_such_package']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(repository, "doubled", source="local")
    with pytest.raises(ValueError, match='expected "owner/name"'):
        hub.load("just-a-name", "doubled")


def test_a_kept_repository_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", str(tmp_path))
    (tmp_path / "someone_models_main").mkdir()
    (tmp_path / "someone_models_main/hubconf.py").write_text(HUBCONF)
    assert hub.list("someone/models", trust_repo=True) == ["doubled"]
    assert hub.help("someone/models", "doubled") == "Two times x."  # trusted since the call before
    monkeypatch.setattr("builtins.input", lambda question: "n")
    with pytest.raises(Exception, match="Untrusted"):
        (tmp_path / "trusted_list").write_text("")
        hub.list("someone/models")


def test_state_dict_from_an_address(tmp_path):
    saved = tmp_path / "weights.pt"
    cresset.save({"w": cresset.ones(2)}, saved)
    digest = hashlib.sha256(saved.read_bytes()).hexdigest()[:8]
    named = saved.rename(tmp_path / f"weights-{digest}.pt")
    found = hub.load_state_dict_from_url(
        named.as_uri(), model_dir=str(tmp_path / "kept"), check_hash=True, progress=False
    )
    assert found["w"].tolist() == [1, 1] and (tmp_path / "kept" / named.name).exists()
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(named.as_uri(), str(tmp_path / "other.pt"), hash_prefix="00", progress=False)
    assert not (tmp_path / "other.pt").exists()
