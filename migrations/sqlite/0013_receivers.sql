-- What an endpoint's requests are kept to: networks (a JSON array of texts), and who may vouch for its receiver (PEM).

ALTER TABLE endpoints ADD COLUMN only_networks TEXT
    CONSTRAINT only_networks_are_1_to_32 CHECK (json_array_length(only_networks) BETWEEN 1 AND 32);
ALTER TABLE endpoints ADD COLUMN ca_certificates TEXT;

UPDATE schema_version SET version = 13;
