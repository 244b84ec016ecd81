-- Up Migration
CREATE TABLE logs.slow_request (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  service text NOT NULL,
  method text NOT NULL,
  route text NOT NULL,
  status integer NOT NULL,
  duration_ms double precision NOT NULL,
  request_id text NOT NULL,
  trace_id text,
  user_id text,
  cache text,
  database_calls integer,
  database_ms double precision
);
CREATE INDEX slow_request_at ON logs.slow_request (at);

CREATE TABLE logs.slow_query (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  service text NOT NULL,
  statement text NOT NULL,
  duration_ms double precision NOT NULL,
  route text,
  request_id text,
  trace_id text
);
CREATE INDEX slow_query_at ON logs.slow_query (at);
