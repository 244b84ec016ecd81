#!/bin/bash
# Runs once, on an empty volume. The role `platform` owns the platform's databases, and creates a role for each service.
set -euo pipefail

# psql reads the passwords itself, because a command line is visible to other processes.
psql --set=ON_ERROR_STOP=1 --quiet --dbname=postgres <<'SQL'
\set platform `cat /run/secrets/platform-password`
\set content_server `cat /run/secrets/content-server-password`
\set grafana `cat /run/secrets/grafana-password`
CREATE ROLE platform LOGIN CREATEROLE PASSWORD :'platform';
CREATE ROLE content_server LOGIN PASSWORD :'content_server';
CREATE ROLE grafana LOGIN PASSWORD :'grafana';
CREATE DATABASE platform OWNER platform;
CREATE DATABASE logs OWNER platform;
REVOKE ALL ON DATABASE platform, logs FROM PUBLIC;
GRANT CONNECT ON DATABASE platform TO content_server;
GRANT CONNECT ON DATABASE logs TO grafana;
SQL

# The services' migrations create the tables later; the default privileges let Grafana read each of them.
psql --set=ON_ERROR_STOP=1 --quiet --dbname=logs <<'SQL'
CREATE SCHEMA logs AUTHORIZATION platform;
GRANT USAGE ON SCHEMA logs TO grafana;
ALTER DEFAULT PRIVILEGES FOR ROLE platform IN SCHEMA logs GRANT SELECT ON TABLES TO grafana;
SQL
