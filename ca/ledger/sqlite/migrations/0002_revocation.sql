-- Revoked certificates, by the serial of their entry.
CREATE TABLE revocations (
	serial  BLOB PRIMARY KEY,
	revoked INTEGER NOT NULL,
	reason  INTEGER NOT NULL, -- CRLReason (RFC 5280 section 5.3.1)
	by      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Certificates whose own serial number is another than that of their entry, since a remote authority chose it.
CREATE TABLE leaf_serials (
	leaf   BLOB NOT NULL,
	serial BLOB NOT NULL,
	PRIMARY KEY (leaf, serial)
) STRICT, WITHOUT ROWID;
