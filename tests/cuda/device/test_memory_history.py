"""The history of device memory: snapshots, and the page that draws it."""

import gc
import json
import pickle
import re

import pytest

import cresset as torch
from cresset import nn
from cresset.show.memory_page import size_text, time_text

MIB = 2**20


@pytest.fixture
def recording():
    gc.collect()
    torch.cuda.memory._record_memory_history()
    yield
    torch.cuda.memory._record_memory_history(None)


def events(action):
    return [event for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] == action]


class TestHistory:
    def test_an_allocation_and_its_free_are_recorded_with_their_line(self, recording):
        x = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
        where = x.data_ptr()
        del x
        made, freed = events("alloc")[-1], events("free_completed")[-1]
        assert (
            made["addr"] == freed["addr"] == where
            and made["size"] == freed["size"] == 3 * MIB
            and made["time_us"] <= freed["time_us"]
        )
        frame = made["frames"][0]
        assert (
            frame["filename"].endswith("test_memory_history.py")
            and frame["name"] == "test_an_allocation_and_its_free_are_recorded_with_their_line"
        )
        assert len(made["frames"]) > 1 and events("free_requested")[-1]["addr"] == where

    def test_callers_are_left_out_without_a_context(self):
        torch.cuda.memory._record_memory_history(context=None)
        x = torch.empty(10, device="cuda")
        assert len(events("alloc")[-1]["frames"]) == 1
        del x
        torch.cuda.memory._record_memory_history(None)

    def test_the_module_is_named(self, recording):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(4, 4)

            def forward(self, x):
                return self.inner(x)

        net = Net().cuda()
        net(torch.ones(2, 4, device="cuda"))
        assert "Net.inner" in {event["frames"][0]["module"] for event in events("alloc")}

    def test_only_the_last_events_are_kept(self):
        torch.cuda.memory._record_memory_history(max_entries=3, clear_history=True)
        for _ in range(5):
            torch.empty(8, device="cuda")
        assert len(torch._native.cuda.memory_history(0)) == 3
        torch.cuda.memory._record_memory_history(None)
        assert torch._native.cuda.memory_history(0) == []

    def test_state_keeps_no_events(self):
        torch.cuda.memory._record_memory_history("state")
        x = torch.empty(8, device="cuda")
        found = torch.cuda.memory._snapshot()
        assert found["device_traces"] == [[]] * torch.cuda.device_count()
        frames = [
            block["frames"]
            for segment in found["segments"]
            for block in segment["blocks"]
            if block["address"] == x.data_ptr()
        ]
        assert frames[0][0]["name"] == "test_state_keeps_no_events"
        torch.cuda.memory._record_memory_history(None)

    def test_segments_add_up(self):
        x = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
        for segment in torch.cuda.memory._snapshot()["segments"]:
            assert segment["total_size"] == sum(block["size"] for block in segment["blocks"])
            assert segment["allocated_size"] == sum(
                block["size"] for block in segment["blocks"] if block["state"] == "active_allocated"
            )
        assert (
            sum(segment["allocated_size"] for segment in torch.cuda.memory_snapshot()) == torch.cuda.memory_allocated()
        )
        del x

    def test_a_dump_is_plain_dictionaries(self, recording, tmp_path):
        x = torch.empty(8, device="cuda")
        torch.cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
        with open(tmp_path / "snapshot.pickle", "rb") as file:
            found = pickle.load(file)
        assert set(found) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
        assert found["device_traces"][0][-1]["addr"] == x.data_ptr()

    def test_memory_that_runs_out_is_recorded(self, recording):
        with pytest.raises(torch.OutOfMemoryError, match="largest holders|Tried to allocate"):
            torch.empty(2**50, dtype=torch.uint8, device="cuda")
        assert events("oom")[-1]["size"] == 2**50

    @pytest.mark.parametrize("wrong", [{"enabled": "some"}, {"context": "most"}, {"stacks": "c"}, {"max_entries": 0}])
    def test_wrong_arguments(self, wrong):
        with pytest.raises(ValueError):
            torch.cuda.memory._record_memory_history(**wrong)
        with pytest.raises(TypeError, match="color"):
            torch.cuda.memory._record_memory_history(color=1)


class TestTimeline:
    def test_the_page_holds_the_numbers(self, tmp_path):
        gc.collect()
        before = torch.cuda.memory_allocated()
        torch.cuda.memory._record_memory_history()
        first = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
        second = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
        first_line = "first = torch.empty(4 * MIB"
        del first
        path = torch.cuda.memory.timeline(tmp_path / "page.html", title="A <small> page")
        text = (tmp_path / "page.html").read_text()
        torch.cuda.memory._record_memory_history(None)
        assert path == tmp_path / "page.html" and "<title>A &lt;small&gt; page</title>" in text
        assert "<dt>allocations</dt><dd>2</dd>" in text and "<dt>frees</dt><dd>1</dd>" in text
        assert f"<dt>peak</dt><dd>{size_text(before + 12 * MIB)}</dd>" in text
        assert f"<dt>held at the end</dt><dd>{size_text(before + 8 * MIB)}</dd>" in text
        table = text.partition("<tbody>")[2]
        assert (
            table.index("8.00 MiB") < table.index("4.00 MiB")
            and first_line in table
            and "test_memory_history.py:" in table
        )
        data = json.loads(re.search(r"const data=(\{.*?\}),tip=", text, re.DOTALL)[1])
        assert data["events"]["total"] == [
            before,
            before + 4 * MIB,
            before + 12 * MIB,
            before + 8 * MIB,
            before + 8 * MIB,
        ]
        assert all(
            sum(row) == total for key in ("events", "time") for row, total in zip(data[key]["by"], data[key]["total"])
        )
        assert max(data["time"]["total"]) == before + 12 * MIB and min(data["time"]["reserved"]) >= before
        del second

    def test_many_events_become_few_columns_and_keep_the_peak(self, recording, tmp_path):
        for number in range(1500):
            torch.empty(2 * MIB if number == 700 else 512, dtype=torch.uint8, device="cuda")
        torch.cuda.memory.timeline(tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text()
        data = json.loads(re.search(r"const data=(\{.*?\}),tip=", text, re.DOTALL)[1])
        assert len(data["events"]["total"]) < 710 and len(data["time"]["total"]) < 710
        assert max(data["events"]["total"]) - min(data["events"]["total"]) == 2 * MIB

    def test_nothing_comes_from_elsewhere(self, recording, tmp_path):
        torch.empty(8, device="cuda")
        text = torch.cuda.memory.timeline(tmp_path / "page.html").read_text()
        assert not re.search(r"https?://|src=|@import|<link", text)

    def test_without_a_history_it_says_how_to_get_one(self, tmp_path):
        with pytest.raises(RuntimeError, match="_record_memory_history"):
            torch.cuda.memory.timeline(tmp_path / "page.html")

    def test_units(self):
        assert [size_text(n) for n in (0, 1023, 1536, 20 * MIB, 300 * MIB, 3 * 2**40)] == [
            "0 B",
            "1023 B",
            "1.50 KiB",
            "20.0 MiB",
            "300 MiB",
            "3.00 TiB",
        ]
        assert [time_text(n) for n in (5, 1500, 2_500_000, 3_000_000_000)] == ["5 ns", "1.5 µs", "2.5 ms", "3 s"]


class TestPools:
    def test_memory_of_a_pool_stays_apart(self):
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            x = torch.empty(1000, device="cuda")
        y = torch.empty(1000, device="cuda")
        blocks = [
            block["address"]
            for segment in pool.snapshot()
            for block in segment["blocks"]
            if block["state"] == "active_allocated"
        ]
        assert blocks == [x.data_ptr()] and y.data_ptr() not in blocks and pool.use_count() == 1 and pool.id[0] == 0

    def test_figures_of_pinned_memory(self):
        gc.collect()
        before = torch.cuda.host_memory_stats()["allocated_bytes.current"]
        x = torch.empty(4096, dtype=torch.uint8).pin_memory()
        assert torch.cuda.host_memory_stats()["allocated_bytes.current"] - before == 4096
        del x
        torch.cuda.reset_peak_host_memory_stats()
        figures = torch.cuda.host_memory_stats_as_nested_dict()
        assert (
            figures["allocated_bytes"]["current"] == figures["allocated_bytes"]["peak"] == before
            and figures["reserved_bytes"]["current"] >= 4096
        )
