from tests.web.conftest import visit

__all__ = ["visit"]
