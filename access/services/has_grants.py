"""Whether anybody but administrators could open a folder."""

from access.models import FolderGrant
from core.types import FolderRef


def has_grants(folder: FolderRef) -> bool:
    """Whether a direct or inherited grant reaches the folder, of a disabled account too. Asked for the shell alone."""
    return FolderGrant.objects.filter(content_object_id__in=folder.lineage).exists()
