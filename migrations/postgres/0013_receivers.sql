-- What an endpoint's requests are kept to: networks, and who may vouch for its receiver.

ALTER TABLE fencepost.endpoints ADD COLUMN only_networks text[], ADD COLUMN ca_certificates text;
ALTER TABLE fencepost.endpoints ADD CONSTRAINT only_networks_are_1_to_32
    CHECK (cardinality(only_networks) BETWEEN 1 AND 32);
COMMENT ON COLUMN fencepost.endpoints.only_networks IS
    'Nothing is sent to an address outside of these. NULL: all that the deployment allows.';
COMMENT ON COLUMN fencepost.endpoints.ca_certificates IS
    'Certificates in PEM that vouch for the receiver beside the roots of the platform. Public. NULL: none.';

UPDATE fencepost.schema_version SET version = 13;
