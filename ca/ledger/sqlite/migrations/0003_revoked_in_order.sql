-- Revocations by the place of the certificate in the roll, so that they are read in its order: by serial, each page would sort all of them.
ALTER TABLE revocations RENAME TO revocations_by_serial;
CREATE TABLE revocations (
	certificate INTEGER PRIMARY KEY REFERENCES certificates (id),
	revoked     INTEGER NOT NULL,
	reason      INTEGER NOT NULL, -- CRLReason (RFC 5280 section 5.3.1)
	by          TEXT NOT NULL
) STRICT;
INSERT INTO revocations (certificate, revoked, reason, by)
	SELECT c.id, r.revoked, r.reason, r.by FROM revocations_by_serial r JOIN certificates c ON c.serial = r.serial;
DROP TABLE revocations_by_serial;
