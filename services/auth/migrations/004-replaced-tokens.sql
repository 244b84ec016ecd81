-- Up Migration

-- Finds replaced tokens for their deletion; one in 16 stays (`deletable` in sessions/session-store.ts). On a table of
-- millions of rows, create this index beforehand with CREATE INDEX CONCURRENTLY.
CREATE INDEX IF NOT EXISTS refresh_token_replaced ON auth.refresh_token (replaced_at)
  WHERE replaced_at IS NOT NULL AND get_byte(hash, 0) >= 16;
