"""What commands print of indexes: what was built, what they hold, and whether they are whole."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.terminal.settings import log
from schemas.errors import format_count

if TYPE_CHECKING:
    from indexes.corpora.corpus import Corpus
    from indexes.index_builder import BuildReport
    from indexes.index_verification import Verification
    from indexes.passage_index import Index
    from indexes.ranking.compressed_vectors import CompressedInfo
    from indexes.ranking.vectors import VectorInfo


def show_index_built(built: "BuildReport", corpus: "Corpus", path: Path) -> None:
    """What was indexed, how fast, and what was left out."""
    for problem in built.problems:
        log.warning("%s", problem)
    for file in corpus.skipped_files:
        log.warning("%s: not a kind of passage file, left out", file)
    info = built.info
    skipped = f", {info.skipped} skipped" if info.skipped else ""
    pace = f" ({info.passages / info.seconds:,.0f} passages/s)" if info.seconds >= 1 else ""
    log.info("%s: %s%s in %.1f s%s", path, format_count(info.passages, "passage"), skipped, info.seconds, pace)
    if info.segmentation:
        log.info("documents were cut into %s", info.segmentation)


def show_embedding_done(passages: int, path: Path) -> None:
    """How many passages of an index were embedded; nothing where none were."""
    if passages:
        log.info("%s: %d passages embedded", path, passages)


def show_compressed_vectors(compressed: "CompressedInfo", path: Path) -> None:
    """What the compressed vectors of an index take of memory."""
    each = compressed.bytes / compressed.passages
    log.info("%s: compressed to %.0f bytes a passage, %.1f MB in all", path, each, compressed.bytes / 1e6)


def show_index(index: "Index", path: Path, *, as_json: bool) -> None:
    """What an index holds and how it was made."""
    info, vectors, compressed = index.info, index.vector_info, index.compressed_info
    if as_json:
        import msgspec

        shown = {"model": vectors.model, "digest": vectors.digest, "size": vectors.size} if vectors else None
        if shown and compressed:
            shown["compressed"] = {"recipe": compressed.recipe, "bytes": compressed.bytes}
        typer.echo(msgspec.json.encode(msgspec.to_builtins(info) | {"vectors": shown}).decode())
        return
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    rows = {
        "index": str(path),
        "passages": f"{info.passages}" + (f" ({info.skipped} skipped)" if info.skipped else ""),
        "size": f"{size / 1e6:.1f} MB",
        "shards": str(info.shards or "none"),
        "analyzer": info.analyzer,
        "segments": info.segmentation or "none: the passages are as they came",
        "sources": "\n".join(f"{'':10}{source}" for source in info.sources).strip(),
        "vectors": f"{vectors.model}, {vectors.size} numbers each" if vectors else "none",
        "memory": _describe_vector_memory(vectors, compressed) if vectors else "",
        "made by": f"{info.made_by} in {info.seconds} s",
    }
    for name, value in rows.items():
        if value:
            typer.echo(f"{name:10}{value}")


def _describe_vector_memory(vectors: "VectorInfo", compressed: "CompressedInfo | None") -> str:
    """What searching by meaning takes of it."""
    if compressed:
        each = compressed.bytes / compressed.passages
        return f"{compressed.bytes / 1e6:,.1f} MB to search by meaning: {compressed.recipe}, {each:.0f} bytes a passage"
    return f"{4 * vectors.size * vectors.passages / 1e6:,.1f} MB to search by meaning"


def show_verification(found: "Verification", path: Path) -> None:
    """What of an index was found to be as it was built."""
    typer.echo(f"{path}: {found.files} files, {found.bytes / 1e6:.1f} MB, are as they were built")
    if found.vectors:
        compressed = ", and those compressed are theirs" if found.compressed else ""
        typer.echo(f"{path}: {found.vectors} vectors are whole{compressed}")
