"""Models from the Hugging Face hub, named `hf:user/repo`, `hf:user/repo:quant` or `hf:user/repo/file.gguf`.

Beside `agent/models/openai_client.py` this is the one place that opens a connection, and only for a model that
is named so. Files stay in the Hugging Face cache. With `HF_HUB_OFFLINE=1` the hub is not asked: what is in the cache
is used.
"""

import errno
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError, RunError, UsageError
from schemas.secrets import hide_secrets

PREFIX = "hf:"
PREFERRED = ("q4_k_m", "q8_0", "f16")  # the first of these, where a repository has several and none is named
SHA256_DIGITS = 64
CONNECT_SECONDS = 5.0  # until the hub is taken to be out of reach
_NAME = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)(?:/(?P<file>.+\.gguf)|:(?P<quant>[\w.-]+))?")
_REMEDIES = {  # by the name of the hub's error; the first that fits
    "GatedRepoError": "Its owners want to be asked: accept their terms on the hub, and log in with `hf auth login`.",
    "RepositoryNotFoundError": "The hub knows no such repository, or shows it to few. Is the name right?",
    "LocalEntryNotFoundError": "It is not in the cache, and the hub is out of reach.",
    "EntryNotFoundError": "The repository has no such file. hf:user/repo:quant finds one by its quantisation.",
}
_OTHER_REMEDY = "Is the name right, and the hub within reach? A .gguf can be named by its path, too."


def fetch(name: str) -> Path:
    """The GGUF of that name in the cache, downloaded if it is not there yet.

    Raises `UsageError` for a name of another form or a file that the repository does not have (listing those that it
    has), `MissingError` where the hub does not know it or cannot be reached, `RunError` where the disk is full or what
    came is damaged.
    """
    repo, file, quant = _parse_name(name)
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return find_cached(name)
    if why := _explain_unreachable():
        with suppress(MissingError):
            return find_cached(name)
        remedy = "Connect this machine to the network, and try again."
        raise MissingError(f"{name} cannot be had: the hub is out of reach ({why})", remedy=remedy)
    try:
        if not file:
            files = HfApi().list_repo_files(repo)
            file = choose_file(sorted(found for found in files if found.endswith(".gguf")), repo, quant)
        return _download(repo, file)
    except ConvagentError:
        raise
    except Exception as error:  # the errors of the hub, its cache and the connection share no base
        raise _explain(name, error) from error


def _explain_unreachable() -> str:
    """Why no connection to the hub can be opened, asked once; "" where it answers.

    The library would try six times, and say so each time. It goes on doing so for a connection that breaks off.
    """
    from huggingface_hub import get_session
    from huggingface_hub.constants import ENDPOINT

    try:
        get_session().head(ENDPOINT, timeout=CONNECT_SECONDS)
    except Exception as error:  # the transport's
        return re.sub(r"\[Errno \S+\] ", "", " ".join(hide_secrets(str(error)).split())) or type(error).__name__
    return ""


def find_cached(name: str) -> Path:
    """The GGUF of that name in the cache; nothing is asked of the hub. Raises `MissingError` where it is not there."""
    repo, file, quant = _parse_name(name)
    files = list_cached_files().get(repo, {})
    if file not in files and (file or not files):
        remedy = f"`convagent model pull {name}` fetches it, where HF_HUB_OFFLINE is not set."
        raise MissingError(f"{name} is not in the cache", remedy=remedy)
    return files[file or choose_file(sorted(files), repo, quant)]


def list_cached_files() -> dict[str, dict[str, Path]]:
    """The GGUF files in the cache by repository and by their names there; of several revisions, the last to come."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = sorted(scan_cache_dir().repos, key=lambda repo: repo.repo_id)
    except CacheNotFound:
        return {}
    found: dict[str, dict[str, Path]] = {}
    for repo in repos:
        for revision in sorted(repo.revisions, key=lambda revision: revision.last_modified):
            for file in sorted(revision.files, key=lambda file: file.file_path):
                if file.file_name.endswith(".gguf") and repo.repo_type == "model":
                    shown = file.file_path.relative_to(revision.snapshot_path).as_posix()
                    found.setdefault(repo.repo_id, {})[shown] = file.file_path
    return found


def choose_file(files: list[str], repo: str, quant: str | None) -> str:
    """The one GGUF among files that is meant: of a quantisation, or the preferred one. The error lists them."""
    wanted = [quant.lower()] if quant else list(PREFERRED)
    for part in wanted:
        matching = [file for file in files if re.search(rf"(^|[-._]){re.escape(part)}([-._]|$)", file.lower())]
        if len(matching) == 1:
            return matching[0]
    if len(files) == 1 and not quant:
        return files[0]
    listed = ", ".join(files) or "none"
    raise UsageError(f"hf:{repo} has no single file that is meant (.gguf files: {listed})", remedy="Name the file.")


def _parse_name(name: str) -> tuple[str, str | None, str | None]:
    """Repository, file and quantisation of a name; one of the last two at most."""
    if found := _NAME.fullmatch(name):
        return found["repo"], found["file"], found["quant"]
    raise UsageError(f"{name!r} is not hf:user/repo, hf:user/repo:quant or hf:user/repo/file.gguf")


def _download(repo: str, file: str) -> Path:
    """A file in the cache. What just came is checked: the name of its contents there, an ETag, is their SHA-256."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    known = try_to_load_from_cache(repo, file)
    if not known:
        _fetch_contents(repo, file)
    path = Path(hf_hub_download(repo, file))
    contents = path.resolve()
    if str(path) != known and len(contents.name) == SHA256_DIGITS and hash_file(contents) != contents.name:
        contents.unlink()
        path.unlink()
        raise RunError(f"hf:{repo}/{file} came damaged: its SHA-256 is not the hub's", remedy="Fetch it again.")
    return path


def count_received(name: str) -> int:
    """Bytes of a repository that are here, those of a fetch in hand or interrupted among them."""
    from huggingface_hub.constants import HF_HUB_CACHE

    blobs = Path(HF_HUB_CACHE, f"models--{_parse_name(name)[0].replace('/', '--')}", "blobs")
    return sum(blob.stat().st_size for blob in blobs.glob("*"))


def _fetch_contents(repo: str, file: str) -> None:
    """Fetch a file's contents to where the cache looks for them, from where an interrupted fetch ended.

    The library itself goes on after a broken connection, and begins anew in another process.
    """
    from filelock import FileLock
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.file_download import http_get, repo_folder_name
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    url = hf_hub_url(repo, file)
    about = get_hf_file_metadata(url)
    if not about.etag or not about.size:
        return
    contents = Path(HF_HUB_CACHE, repo_folder_name(repo_id=repo, repo_type="model"), "blobs", about.etag)
    contents.parent.mkdir(parents=True, exist_ok=True)
    is_elsewhere = urlsplit(about.location).netloc != urlsplit(url).netloc  # an address that is a key itself
    headers = {} if is_elsewhere else build_hf_headers()
    get = partial(http_get, headers=headers, expected_size=about.size, displayed_filename=file)
    with FileLock(contents.with_suffix(".lock")):
        if contents.exists():
            return
        begun = contents.with_suffix(".partial")
        with begun.open("ab") as received:
            get(about.location, received, resume_size=received.tell())
        begun.rename(contents)


def _explain(name: str, error: Exception) -> MissingError | RunError:
    """What the hub's error means to a person. It may quote the token or the address that it was asked with."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return RunError(f"{name} cannot be kept: the disk is full", remedy="Make room, or set HF_HOME.")
    kinds = [kind.__name__ for kind in type(error).__mro__]
    remedy = next((remedy for kind, remedy in _REMEDIES.items() if kind in kinds), _OTHER_REMEDY)
    why = hide_secrets((str(error).splitlines() or [type(error).__name__])[0])
    return MissingError(f"{name} cannot be had ({why})", remedy=remedy)
