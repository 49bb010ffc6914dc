"""Requests to a program, computed together: those with the same sizes are joined along the first dimension, run once,
and the outputs taken apart again.
"""

import time

import cresset

from . import open_inference, predictions
from .problems import Refused, is_memory

# Note [Which part of a batch failed]
# When a joined batch raises, each of its requests is run alone: the one at fault gets its error, the others their
# answers. When an output's first dimension is not the batch's, rows cannot be told apart: the requests are run alone,
# and so are all that follow (`joins`).


class ProgramRunner:
    """Answers batches of requests with a Program."""

    def __init__(self, program, settings):
        self.program, self.settings = program, settings
        self.bound = settings.memory << 20
        self.joins = settings.batch > 1 and not program.fixed_batch
        self.datatypes = {entry["name"]: entry["datatype"] for entry in program.inputs}

    def metadata(self):
        program = self.program
        return {
            "platform": program.platform,
            "inputs": program.inputs,
            "outputs": program.outputs,
            "joins": self.joins,
        }

    def answer(self, requests):
        """One (status, content type, headers, body) for each request, and the seconds the model computed."""
        answers, groups = [None] * len(requests), {}
        for at, request in enumerate(requests):
            try:
                question = self.read(request)
            except Refused as problem:
                answers[at] = problem
                continue
            inputs = question.inputs
            alone = not self.joins or any(tensor.dim() == 0 for tensor in inputs.values())
            key = (at,) if alone else tuple((n, t.dtype, t.shape[1:]) for n, t in inputs.items())
            groups.setdefault(key, []).append((at, request, question))
        start = time.perf_counter()
        for group in groups.values():
            self.run_group(group, answers)
        seconds = time.perf_counter() - start
        return [(a.status, None, a.headers, a.message) if isinstance(a, Refused) else a for a in answers], seconds

    def read(self, request):
        if request.kind == "infer":
            question = open_inference.read_question(request.body, request.json_length, self.bound)
        else:
            inputs = predictions.read_sample(request.body, self.bound, self.program.names, self.datatypes)
            question = open_inference.Question(inputs, "", None, False)
        self.program.check(question.inputs)
        return question

    def run_group(self, group, answers):
        try:
            if len(group) == 1:
                outputs = [self.program(group[0][2].inputs)]
            else:
                outputs = self.run_joined([question.inputs for _, _, question in group])
        except Exception as error:
            if len(group) > 1:
                for one in group:
                    self.run_group([one], answers)
            else:
                answers[group[0][0]] = as_refusal(error, self.settings.memory)
            return
        for (at, request, question), found in zip(group, outputs):
            try:
                answers[at] = (200, *self.write(request, question, found))
            except Exception as error:
                answers[at] = as_refusal(error, self.settings.memory)

    def run_joined(self, inputs):
        """The outputs of each request, computed together."""
        names = list(inputs[0])
        rows = [tensors[names[0]].shape[0] for tensors in inputs]
        if any(tensor.shape[0] != count for tensors, count in zip(inputs, rows) for tensor in tensors.values()):
            return [self.program(tensors) for tensors in inputs]
        outputs = self.program({name: cresset.cat([tensors[name] for tensors in inputs]) for name in names})
        if any(value.dim() == 0 or value.shape[0] != sum(rows) for value in outputs.values()):
            self.joins = False
            return [self.program(tensors) for tensors in inputs]
        parts = {name: value.split(rows) for name, value in outputs.items()}
        return [{name: part[i] for name, part in parts.items()} for i in range(len(inputs))]

    def write(self, request, question, outputs):
        if request.kind == "infer":
            return open_inference.write_answer(question, outputs, self.settings.name, self.settings.version)
        return predictions.write_sample(outputs)


def as_refusal(error, memory):
    """What a client hears of an exception in a program. A program is a function of its inputs: what it refuses, the
    inputs are to blame for, and the status is 400, not 500.
    """
    if isinstance(error, Refused):
        return error
    if is_memory(error):
        return Refused(507, f"the request needs more memory than the {memory} MB it may take")
    words = str(error).strip().splitlines() or [""]  # TorchScript tells the program's lines first and the error last
    last = words[0] if len(words) == 1 else words[-1]
    kind = f"{type(error).__name__}: "  # which TorchScript says itself
    return Refused(400, f"the model refused the inputs: {kind}{last.removeprefix(kind)}"[:2000])
