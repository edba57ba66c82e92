"""The stores that this process has open, one for each organization."""

import atexit
import os
import threading

from django.conf import settings

from access.writer import writer_queue
from kb.store import filesystem, provision
from kb.store.content_store import ContentStore
from kb.store.data_format import check_format
from kb.store.layout import Layout

_stores: dict[str, ContentStore] = {}
_opening = threading.Lock()


def provision_store(organization_id: str) -> None:
    """Give an organization its files under the data directory. Does nothing where it has them."""
    provision.provision(settings.DATA_DIR, organization_id)


def store_of(organization_id: str) -> ContentStore:
    """The organization's store, opened at the first call. Raises UnknownFormat, UnsuitableFilesystem,
    FileNotFoundError.
    """
    store = _stores.get(organization_id)
    if store is None:
        with _opening:
            store = _stores.get(organization_id)
            if store is None:
                layout = open_layout(organization_id)
                store = _stores[organization_id] = ContentStore(layout, writer_queue(organization_id))
    return store


def open_layout(organization_id: str) -> Layout:
    """An organization's open directories, without a store on them.

    Raises UnknownFormat, UnsuitableFilesystem, FileNotFoundError.
    """
    filesystem.check_kind(settings.DATA_DIR)
    check_format(settings.DATA_DIR)
    return Layout(settings.DATA_DIR, organization_id)


def close_all() -> None:
    """Stop every store cleanly, with a checkpoint. A later ``store_of`` opens anew."""
    while _stores:
        _stores.popitem()[1].close()


def _forget_inherited() -> None:
    # A forked child shares its parent's descriptors and has none of its threads: it opens everything anew.
    global _opening
    for store in _stores.values():
        store.layout.close()
    _stores.clear()
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_forget_inherited)
atexit.register(close_all)
