"""The search engines that this process has open, one for each store."""

import os
import threading
from weakref import WeakKeyDictionary

from kb.search.engine import SearchEngine
from kb.store.content_store import ContentStore
from kb.store.stores import store_of

_engines: WeakKeyDictionary[ContentStore, SearchEngine] = WeakKeyDictionary()
_opening = threading.Lock()


def engine_of(organization_id: str) -> SearchEngine:
    """The organization's engine, made at the first call."""
    store = store_of(organization_id)
    with _opening:
        engine = _engines.get(store)
        if engine is None:
            engine = _engines[store] = SearchEngine(store)
            store.before_close(engine.close)
        return engine


def _forget_inherited() -> None:
    global _opening
    _engines.clear()
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_forget_inherited)
