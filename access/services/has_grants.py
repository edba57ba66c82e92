"""Whether anybody was granted a folder."""

from access.models import FolderGrant
from core.types import FolderRef


def has_grants(folder: FolderRef) -> bool:
    """Whether a direct or inherited grant reaches the folder. Administrators, who need none, do not count."""
    return FolderGrant.objects.filter(content_object_id__in=folder.lineage).exists()
