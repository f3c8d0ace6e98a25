"""Objects that admission has queried, by hand."""

from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey


def related_of(*documents: Document) -> RelatedObjects:
    """The results of queries that find these; a Project stands for its namespace too."""
    keys = [
        ObjectKey(each["kind"].lower(), each["metadata"].get("namespace") or "", each["metadata"]["name"])
        for each in documents
    ]
    projects = {each["spec"]["namespace"]: each for each in documents if each["kind"] == "Project"}
    return RelatedObjects(objects=dict(zip(keys, documents, strict=True)), projects=projects)
