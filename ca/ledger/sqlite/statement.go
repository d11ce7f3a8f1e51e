package sqlite

// statements are what the writer's connection has prepared.
type statements struct {
	begin, commit, rollback            *stmt
	known, has                         *stmt
	addIntents, dropIntents            *stmt
	identity, addIdentity              *stmt
	addCertificate                     *stmt
	addToken, consume, giveBack, token *stmt
	pruneTokens                        *stmt
	bundle, addBundle                  *stmt
	probe                              *stmt
	state, revoke, addLeafSerial       *stmt
}

func prepareAll(c *conn) (s statements, err error) {
	for _, p := range []struct {
		to   **stmt
		text string
	}{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.commit, "COMMIT"},
		{&s.rollback, "ROLLBACK"},
		{&s.known, "SELECT serial FROM certificates WHERE serial IN (SELECT unhex(value) FROM json_each(?))"},
		{&s.has, "SELECT 1 FROM certificates WHERE serial = ?"},
		{&s.addIntents, "INSERT INTO intents (id, payload) VALUES (?, ?)"},
		{&s.dropIntents, "DELETE FROM intents WHERE id = ?"},
		{&s.identity, "SELECT id FROM identities WHERE name = ?"},
		{&s.addIdentity, "INSERT INTO identities (name) VALUES (?)"},
		{&s.addCertificate, `INSERT INTO certificates (id, serial, identity, state, settled, span, not_before, not_after, issuer, reason, detail,
			certificate) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&s.addToken, "INSERT INTO join_tokens (hash, id, identity, created, expires) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"},
		{&s.consume, "UPDATE join_tokens SET used_by = ? WHERE hash = ? AND used_by IS NULL AND expires > ?"},
		{&s.giveBack, "UPDATE join_tokens SET used_by = NULL WHERE hash = ? AND used_by = ?"},
		{&s.token, "SELECT used_by IS NOT NULL FROM join_tokens WHERE hash = ?"},
		{&s.pruneTokens, "DELETE FROM join_tokens WHERE expires < ?"},
		{&s.bundle, "SELECT sequence, hash FROM bundles ORDER BY sequence DESC LIMIT 1"},
		{&s.addBundle, "INSERT INTO bundles (sequence, hash, created) VALUES (?, ?, ?)"},
		{&s.state, "SELECT state, id FROM certificates WHERE serial = ?"},
		{&s.revoke, "INSERT INTO revocations (certificate, revoked, reason, by) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"},
		{&s.addLeafSerial, "INSERT INTO leaf_serials (leaf, serial) VALUES (?, ?) ON CONFLICT DO NOTHING"},
		{&s.probe, "INSERT INTO probe (id, at) VALUES (1, ?) ON CONFLICT DO UPDATE SET at = excluded.at"},
	} {
		if *p.to, err = c.prepare(p.text); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *statements) close() {
	for _, p := range []*stmt{
		s.begin, s.commit, s.rollback, s.known, s.has, s.addIntents, s.dropIntents, s.identity, s.addIdentity, s.addCertificate, s.addToken,
		s.consume, s.giveBack, s.token, s.pruneTokens, s.bundle, s.addBundle, s.probe, s.state, s.revoke, s.addLeafSerial,
	} {
		if p != nil {
			_ = p.close() // the connection is closed next, and reports what is wrong with it
		}
	}
}

// blob returns a column as bytes.
func blob(column any) []byte {
	b, _ := column.([]byte)
	return b
}
