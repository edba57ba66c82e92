"""The database itself refuses to change or remove an audit event, whoever asks."""

from typing import Any

from django.db import migrations

SQLITE = [
    """
    CREATE TRIGGER audit_refuses_update BEFORE UPDATE ON access_auditevent
    BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END
    """,
    """
    CREATE TRIGGER audit_refuses_delete BEFORE DELETE ON access_auditevent
    BEGIN SELECT RAISE(ABORT, 'audit events are never removed'); END
    """,
    # INSERT OR REPLACE removes a row without asking the trigger above.
    """
    CREATE TRIGGER audit_refuses_replace BEFORE INSERT ON access_auditevent
    WHEN EXISTS (SELECT 1 FROM access_auditevent WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END
    """,
]
SQLITE_BACK = [
    "DROP TRIGGER audit_refuses_replace",
    "DROP TRIGGER audit_refuses_delete",
    "DROP TRIGGER audit_refuses_update",
]
POSTGRESQL = [
    """
    CREATE FUNCTION audit_refuses() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'audit events are never changed or removed'
       USING ERRCODE = 'integrity_constraint_violation'; END $$
    """,
    """
    CREATE TRIGGER audit_refuses_change BEFORE UPDATE OR DELETE ON access_auditevent
    FOR EACH ROW EXECUTE FUNCTION audit_refuses()
    """,
    """
    CREATE TRIGGER audit_refuses_truncate BEFORE TRUNCATE ON access_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses()
    """,
]
POSTGRESQL_BACK = [
    "DROP TRIGGER audit_refuses_truncate ON access_auditevent",
    "DROP TRIGGER audit_refuses_change ON access_auditevent",
    "DROP FUNCTION audit_refuses()",
]


def refuse_changes(apps: Any, schema_editor: Any) -> None:
    for statement in {"sqlite": SQLITE, "postgresql": POSTGRESQL}[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def allow_changes(apps: Any, schema_editor: Any) -> None:
    for statement in {"sqlite": SQLITE_BACK, "postgresql": POSTGRESQL_BACK}[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("access", "0001_initial")]

    operations = [migrations.RunPython(refuse_changes, allow_changes)]
