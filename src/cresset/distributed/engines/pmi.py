"""What MPI asks when it starts: who am I, how many are we, what do the others say. The store answers.

MPI speaks PMI-1 with whoever started it: lines of `key=value` words on a socket whose number is in the environment.
Here that is a thread of the process itself, so no mpirun is needed.
"""

import contextlib
import os
import socket
import threading
from datetime import timedelta

from ..errors import DistError


def mapping(hosts):
    """Which rank is on which machine, in PMI's words.

    >>> mapping(["a", "a", "b"])
    '(vector,(0,1,2),(1,1,1))'
    """
    numbers, blocks = {}, []
    for host in hosts:
        node = numbers.setdefault(host, len(numbers))
        if blocks and blocks[-1][0] == node:
            blocks[-1][1] += 1
        else:
            blocks.append([node, 1])
    return "(vector," + ",".join(f"({node},1,{count})" for node, count in blocks) + ")"


class Answers:
    """Answers the questions of one process out of a store. The job's name must be new: leftovers of another would be
    met.
    """

    def __init__(self, store, rank, size, job, hosts):
        self.store, self.rank, self.size, self.job, self.mapping = store, rank, size, job, mapping(hosts)
        self.barriers = 0
        self.ours, self.its = socket.socketpair()
        os.set_inheritable(self.its.fileno(), False)
        os.environ.update(PMI_FD=str(self.its.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(size))
        threading.Thread(target=self.run, name="cresset-pmi", daemon=True).start()

    def forget(self):
        """Take the words out of the environment that children would misunderstand."""
        for name in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):
            os.environ.pop(name, None)

    def answer_the_last(self):
        """MPI says goodbye when the process ends and no thread of Python runs any more: the answer waits for it."""
        with contextlib.suppress(OSError):
            self.ours.sendall(b"cmd=finalize_ack\n")
        for end in (self.ours, self.its):
            end.detach()

    def run(self):
        with contextlib.suppress(OSError, DistError), self.ours.makefile("rb") as lines:
            for line in lines:
                words = dict(word.split("=", 1) for word in line.decode().split() if "=" in word)
                self.ours.sendall((self.answer(words) + "\n").encode())

    def answer(self, words):
        command = words.get("cmd")
        if command == "init":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
        if command == "get_maxes":
            return "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=4096"
        if command == "get_appnum":
            return "cmd=appnum appnum=0"
        if command == "get_my_kvsname":
            return f"cmd=my_kvsname kvsname={self.job}"
        if command == "get_universe_size":
            return f"cmd=universe_size size={self.size}"
        if command == "put":
            self.store.set("key/" + words["key"], words["value"])
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            return self.get(words["key"])
        if command == "barrier_in":
            self.barrier()
            return "cmd=barrier_out"
        if command == "finalize":
            return "cmd=finalize_ack"
        return f"cmd={command}_result rc=-1 msg=unknown"

    def get(self, key):
        if key == "PMI_process_mapping":
            return f"cmd=get_result rc=0 msg=success value={self.mapping}"
        if not self.store.check(["key/" + key]):
            return "cmd=get_result rc=-1 msg=key_not_found"
        return f"cmd=get_result rc=0 msg=success value={self.store.get('key/' + key).decode()}"

    def barrier(self):
        """Meet the others. At the end of a program some may never come: MPI is not kept from ending by that."""
        self.barriers += 1
        with contextlib.suppress(DistError):
            self.store.barrier(f"barrier/{self.barriers}", self.size, timedelta(seconds=10))
