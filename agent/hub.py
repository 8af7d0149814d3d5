"""Models from the Hugging Face hub, named `hf:user/repo`, `hf:user/repo:quant` or `hf:user/repo/file.gguf`.

The one place that opens a connection, and only for a model that is named so. Files stay in the Hugging Face cache; a
download that breaks off is gone on with. With `HF_HUB_OFFLINE=1` nothing is asked of the hub: what is in the cache is
used.
"""

import re
from pathlib import Path

from schemas.errors import MissingError, UsageError

PREFIX = "hf:"
PREFERRED = ("q4_k_m", "q8_0", "f16")  # where a repository has several and none is named
_NAME = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)(?:/(?P<file>.+\.gguf)|:(?P<quant>[\w.-]+))?")


def fetched(name: str) -> Path:
    """The GGUF of that name in the cache, downloaded if it is not there yet.

    Raises `UsageError` for a name of another form or a file that the repository does not have (naming those that it
    has), `MissingError` where the hub does not know it or cannot be reached.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"{name!r} is not hf:user/repo, hf:user/repo:quant or hf:user/repo/file.gguf")
    from huggingface_hub import hf_hub_download

    repo = found["repo"]
    try:
        return Path(hf_hub_download(repo, found["file"] or _chosen(repo, found["quant"])))
    except UsageError:
        raise
    except Exception as error:  # the errors of the hub, its cache and the connection share no base
        remedy = "Is the name right, and the hub within reach? A .gguf file that is here can be named by its path."
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingError(f"{name} cannot be had ({why})", remedy=remedy) from error


def _chosen(repo: str, quant: str | None) -> str:
    """The one file of a repository that is meant; of what is in the cache where the hub is not to be asked."""
    from huggingface_hub import HfApi, scan_cache_dir
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        kept = [revision for found in scan_cache_dir().repos if found.repo_id == repo for revision in found.revisions]
        files = {str(file.file_path.relative_to(one.snapshot_path)) for one in kept for file in one.files}
    else:
        files = set(HfApi().list_repo_files(repo))
    return chosen(sorted(file for file in files if file.endswith(".gguf")), repo, quant)


def chosen(files: list[str], repo: str, quant: str | None) -> str:
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
