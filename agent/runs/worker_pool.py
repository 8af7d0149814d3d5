"""Several topics at a time: each is answered by one worker, turn by turn, so what comes of it is always the same."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

Worker = TypeVar("Worker")
Task = TypeVar("Task")
Result = TypeVar("Result")


def run_in_workers(
    work: Callable[[Worker, Task], Iterator[Result]], workers: Sequence[Worker], parts: Iterable[Task]
) -> Iterator[Result]:
    """All that `work` yields for each part, as it comes; with one worker in the order of the parts.

    What one of them raises is raised here. Then, and when this is broken off, the others end with what they have in
    hand.
    """
    if len(workers) == 1:
        for part in parts:
            yield from work(workers[0], part)
        return
    ended = threading.Event()
    free: SimpleQueue[Worker] = SimpleQueue()
    made: SimpleQueue[tuple[Result] | BaseException | None] = SimpleQueue()  # None: a part is done

    def do(part: Task) -> None:
        worker = free.get()
        try:
            for one in () if ended.is_set() else work(worker, part):
                made.put((one,))
                if ended.is_set():
                    break
            made.put(None)
        except BaseException as error:  # raised again by whoever reads
            made.put(error)
        finally:
            free.put(worker)

    for worker in workers:
        free.put(worker)
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            left = len([pool.submit(do, part) for part in parts])
            while left:
                match made.get():
                    case None:
                        left -= 1
                    case BaseException() as error:
                        raise error
                    case (one,):
                        yield one
        finally:
            ended.set()
