"""The lists of the desk, in the order in which its pages name them."""

from access.models import AuditEvent, Connection, FolderGrant, Organization, Person, ServiceAccount
from brain.desk.audit import Audit
from brain.desk.connections import Connections
from brain.desk.grants import Grants
from brain.desk.identities import People, ServiceAccounts
from brain.desk.organization import Organizations
from brain.desk.site import desk

desk.register(Person, People)
desk.register(ServiceAccount, ServiceAccounts)
desk.register(Connection, Connections)
desk.register(FolderGrant, Grants)
desk.register(AuditEvent, Audit)
desk.register(Organization, Organizations)

urls = desk.urls
