-- SQLite has no functions of its own: applications submit by `store::sqlite::accept_in_tx`.
UPDATE schema_version SET version = 9;
