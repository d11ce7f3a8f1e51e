-- Times are milliseconds since 1970, UTC. Texts in JSON can be read with SQLite's own json functions.

-- The principals' SPIFFE IDs: the same few renew all day, so each is stored once.
CREATE TABLE identities (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
) STRICT;

-- One row a group of reservations that were made durable together, until the last of them is settled.
CREATE TABLE intents (
	id      INTEGER PRIMARY KEY,
	payload TEXT NOT NULL -- one JSON object a line and a reservation
) STRICT;

-- One row a settled reservation: state 1 is issued, 2 is failed, 0 was never settled because the server stopped.
CREATE TABLE certificates (
	id          INTEGER PRIMARY KEY, -- its creation time, shifted left by 20 bits, and a counter: the order of the roll
	serial      BLOB NOT NULL,
	identity    INTEGER NOT NULL REFERENCES identities (id),
	state       INTEGER NOT NULL,
	settled     INTEGER,
	span        INTEGER,             -- issued only: not_after is less than 2^span seconds after the creation time
	not_before  INTEGER,
	not_after   INTEGER,
	issuer      BLOB,                -- the authority key identifier
	reason      TEXT,
	detail      TEXT NOT NULL,       -- JSON: profile, rule, names, origin, key, join token
	certificate BLOB                 -- the DER leaf
) STRICT;
CREATE UNIQUE INDEX certificates_serial ON certificates (serial);
-- Every index ends in the row's id, so these also give the order of the roll.
CREATE INDEX certificates_identity ON certificates (identity);
CREATE INDEX certificates_span ON certificates (span) WHERE span IS NOT NULL;
CREATE INDEX certificates_unissued ON certificates (state) WHERE state <> 1;

CREATE TABLE join_tokens (
	hash     BLOB PRIMARY KEY,
	id       TEXT NOT NULL,
	identity TEXT NOT NULL,
	created  INTEGER NOT NULL,
	expires  INTEGER NOT NULL,
	used_by  BLOB -- the serial whose reservation consumed it
) STRICT, WITHOUT ROWID;
CREATE INDEX join_tokens_expires ON join_tokens (expires);

CREATE TABLE bundles (
	sequence INTEGER PRIMARY KEY,
	hash     BLOB NOT NULL,
	created  INTEGER NOT NULL
) STRICT;

-- What a probe writes.
CREATE TABLE probe (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	at INTEGER NOT NULL
) STRICT;
