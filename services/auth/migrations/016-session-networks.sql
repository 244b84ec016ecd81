-- Up Migration
-- Finds whether a user has logged in from a network, also among millions of ended sessions. On a table of millions of rows,
-- create this index beforehand with CREATE INDEX CONCURRENTLY.
CREATE INDEX IF NOT EXISTS session_of_network ON auth.session
  (user_id, (network(set_masklen(address, CASE family(address) WHEN 4 THEN 32 ELSE 64 END))));
