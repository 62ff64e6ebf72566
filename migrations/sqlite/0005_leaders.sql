CREATE TABLE leaders (
    role       TEXT NOT NULL PRIMARY KEY,
    holder     TEXT NOT NULL,
    token      BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

UPDATE schema_version SET version = 5;
