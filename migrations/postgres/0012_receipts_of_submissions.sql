-- From a submission to the receipt of the event that it brings.

CREATE INDEX receipts_submission ON fencepost.receipts (submission) WHERE submission IS NOT NULL;

UPDATE fencepost.schema_version SET version = 12;
