"""The addresses of the viewer: which page, file or change each of them stands for."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from deemster import __version__
from deemster.errors import DeemsterError, InputError, MissingExtraError, StorageError, StoreError
from deemster.view.comparison_pages import (
    ComparisonCache,
    OpenedComparison,
    change_page,
    change_points,
    compared_sample,
)
from deemster.view.experiment_pages import (
    ExperimentCache,
    OpenedExperiment,
    experiment_answer,
    experiment_page,
    grid_page,
)
from deemster.view.label_overview import EXPORTS, label_overview
from deemster.view.label_pages import LabelDesk, LabelRequest
from deemster.view.label_queue import QueueRequest
from deemster.view.opened_run import OpenedRun
from deemster.view.request_guard import API
from deemster.view.request_query import Query
from deemster.view.run_agreement import agreement_page
from deemster.view.run_cache import RunCache
from deemster.view.run_pages import run_list, run_page, run_progress, trend_list
from deemster.view.sample_pages import sample_page, whole_sample
from deemster.view.score_plot import score_points

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from deemster.store import Store

_STATIC = {
    "/": ("index.html", "text/html"),
    "/app.js": ("app.js", "text/javascript"),
    "/app.css": ("app.css", "text/css"),
}
encode_answer = msgspec.json.Encoder(
    enc_hook=lambda value: dict(value) if isinstance(value, Mapping) else str(value), decimal_format="number"
).encode


_Request = TypeVar("_Request", bound=QueueRequest)


class ServedFile(NamedTuple):
    """A file as it is served: its bytes, its media type, and further headers."""

    body: bytes
    kind: str
    headers: Mapping[str, str]


class Viewer:
    """Answers what pages ask.

    Args:
        store: The runs.
        author: Who labels samples here; None where nothing may be changed.

    Attributes:
        pages: What answers a GET, by path.
        acts: What answers a POST, by path.
    """

    def __init__(self, store: Store, *, author: str | None = None) -> None:
        self.store, self.author, self.runs = store, author, RunCache(store)
        self.comparisons = ComparisonCache(self.runs)
        self.experiments = ExperimentCache(self.runs)
        self.pages: Mapping[str, Callable[[Query], Any]] = {
            "session": self._session,
            "runs": lambda query: run_list(store, query.texts, offset=query.whole("offset", 0), limit=query.limit()),
            "trends": lambda _: trend_list(store),
            "runs/{run}": lambda query: run_page(self._run(query)),
            "runs/{run}/progress": lambda query: run_progress(self.runs, query.path["run"]),
            "runs/{run}/samples": self._samples,
            "runs/{run}/samples/{position:int}": lambda query: whole_sample(
                self._run(query), query.path["position"], query.samples()
            ),
            "runs/{run}/score-length": lambda query: score_points(
                self._run(query), query.texts.get("metric", ""), seed=query.whole("seed", 0)
            ),
            "runs/{run}/agreement": lambda query: agreement_page(self._run(query)),
            "compare": lambda query: self._comparison(query).head,
            "compare/samples": lambda query: change_page(
                self._comparison(query), query.changes(), offset=query.whole("offset", 0), limit=query.limit()
            ),
            "compare/points": lambda query: change_points(
                self._comparison(query), query.texts.get("metric", ""), seed=query.whole("seed", 0)
            ),
            "compare/samples/{row_hash}": lambda query: compared_sample(
                self._comparison(query), query.path["row_hash"], query.changes()
            ),
            "experiments/{experiment}": lambda query: experiment_page(self._experiment(query)),
            "experiments/{experiment}/answer": lambda query: experiment_answer(self._experiment(query).answer),
            "experiments/{experiment}/samples": lambda query: grid_page(
                self._experiment(query),
                query.grid(),
                offset=query.whole("offset", 0),
                limit=query.limit(),
                author=self.author,
            ),
            "labels": lambda query: label_overview(self._labelled_run(query)),
            "labels/queue": lambda query: self._desk(query.queue()).page(),
            "labels/sample": lambda query: self._desk(query.queue()).sample(
                query.whole("position", 0), query.whole("repetition", 0)
            ),
        }
        self.acts: Mapping[str, Callable[[bytes], Any]] = {"labels": self._add_label, "labels/undo": self._undo_label}

    def _session(self, _query: Query) -> Any:
        """Who looks at what."""
        return {"version": __version__, "mode": "server", "author": self.author, "reads_only": self.author is None}

    def _samples(self, query: Query) -> Any:
        """Samples of a run."""
        run = self._run(query)
        asked = [part for value in query.many("columns") for part in value.split(",")]
        keys = {name.removeprefix("meta.") for name in asked if name.startswith("meta.")}
        return sample_page(run, query.samples(), offset=query.whole("offset", 0), limit=query.limit(), metadata=keys)

    def _add_label(self, body: bytes) -> Any:
        """Store a label."""
        request = _decode(body, LabelRequest, fault="This is no label")
        return self._desk(request).add(request)

    def _undo_label(self, body: bytes) -> Any:
        """Take the last label back."""
        return self._desk(_decode(body, QueueRequest, fault="This names no run")).undo()

    def label_file(self, query: Query) -> ServedFile:
        """The labels of a run as a file."""
        run = self._labelled_run(query)
        form = query.choice("format", tuple(EXPORTS))
        kind, ending, write = EXPORTS[form]
        # A run's id may hold anything that a header may not.
        safe = re.sub(r"[^A-Za-z0-9._-]", "-", run.row.id)
        return ServedFile(write(run), kind, {"content-disposition": f'attachment; filename="labels-{safe}.{ending}"'})

    def _run(self, query: Query) -> OpenedRun:
        return self.runs.open(query.path["run"])

    def _experiment(self, query: Query) -> OpenedExperiment:
        return self.experiments.open(query.path["experiment"])

    def _labelled_run(self, query: Query) -> OpenedRun:
        return self.runs.open(query.texts.get("run", "latest"))

    def _desk(self, request: QueueRequest) -> LabelDesk:
        request.check()
        return LabelDesk(self.runs.open(request.run), self.author, request)

    def _comparison(self, query: Query) -> OpenedComparison:
        return self.comparisons.open([name for value in query.many("runs") for name in value.split(",") if name])


def _decode(body: bytes, shape: type[_Request], *, fault: str) -> _Request:
    """What a page sends."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{fault}: {error}.") from None


def create_app(viewer: Viewer) -> Starlette:
    """The application that answers requests, without its guard.

    Args:
        viewer: Answers what pages ask.

    Raises:
        MissingExtraError: The extra `view` is not installed.
    """
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - an extra
        from starlette.concurrency import run_in_threadpool  # noqa: PLC0415 - an extra
        from starlette.exceptions import HTTPException  # noqa: PLC0415 - an extra
        from starlette.responses import Response  # noqa: PLC0415 - an extra
        from starlette.routing import Route  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("The viewer", extra="view") from None

    def answer(value: Any, status: int = 200) -> Response:
        return Response(encode_answer(value), status, media_type="application/json")

    def data(path: str, ask: Callable[[Query], Any]) -> Route:
        def endpoint(request: Request) -> Response:
            return answer(ask(Query(request.path_params, request.query_params.multi_items())))

        return Route(API + path, endpoint)

    def change(path: str, act: Callable[[bytes], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            return answer(await run_in_threadpool(act, await request.body()))

        return Route(API + path, endpoint, methods=["POST"])

    def file(path: str, read: Callable[[Query], ServedFile]) -> Route:
        def endpoint(request: Request) -> Response:
            body, kind, headers = read(Query(request.path_params, request.query_params.multi_items()))
            return Response(body, media_type=kind, headers=headers)

        return Route(path, endpoint)

    def say(_request: Request, error: Exception) -> Response:
        status, message = _refusal(error)
        return answer({"error": {"message": message.replace(viewer.store.where, "the store")}}, status)

    routes = [
        *(file(path, functools.partial(_static_file, *shown)) for path, shown in _STATIC.items()),
        *(data(path, ask) for path, ask in viewer.pages.items()),
        file(API + "labels/export", viewer.label_file),
        *(change(path, act) for path, act in viewer.acts.items()),
    ]
    return Starlette(routes=routes, exception_handlers={DeemsterError: say, HTTPException: say, Exception: say})


def _static_file(name: str, kind: str, _query: Query) -> ServedFile:
    return ServedFile(static_file(name), kind, {})


def static_file(name: str) -> bytes:
    """A file of the front end.

    Args:
        name: Its name, one of those that the viewer serves.
    """
    return (resources.files("deemster.view") / "static" / name).read_bytes()


def _refusal(error: Exception) -> tuple[int, str]:
    """The status of an error, and what is wrong, without the place of the store or of any file."""
    if isinstance(error, InputError):
        message = " ".join(issue.message for issue in error.issues)
        status = 500 if isinstance(error, StorageError) else 404 if isinstance(error, StoreError) else 400
        return status, message
    if isinstance(error, DeemsterError):
        return 400, "This cannot be answered."
    if hasattr(error, "status_code"):
        return error.status_code, "There is nothing at this address."
    return 500, "The viewer could not answer. Its terminal says why."
