// Makes what the stack needs of secrets, once, into volumes: each of them is for one kind of container and belongs to the
// user that runs there. What is there stays as it is.
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/secrets';
/** The users of the images. */
const USERS = { services: 1000, auth: 1000, 'content-server': 1000, postgres: 999, redis: 999, grafana: 472 };

// The demo has left a note that its accounts are there: everybody knows their passwords.
if (
  existsSync('/demo/data-is-there') &&
  !/^(127\.|localhost$|\[?::1\]?$)/.test(process.env.BIND_ADDRESS ?? '')
) {
  console.error(
    `This stack has demo data, and BIND_ADDRESS is ${process.env.BIND_ADDRESS}: leave it at 127.0.0.1, or begin anew (docker compose --profile demo down -v).`,
  );
  process.exit(1);
}

const random = () => randomBytes(24).toString('hex');

/** Writes the secret unless it is there, whole or not at all; returns it. */
function keep(owner, name, value) {
  const file = join(ROOT, owner, name);
  if (!existsSync(file)) {
    const next = `${file}.next`;
    // On the disk before it has its name: what is made of it elsewhere outlives a loss of power, and so must this.
    writeFileSync(next, value, { mode: 0o400, flush: true });
    chownSync(next, USERS[owner], USERS[owner]);
    renameSync(next, file);
  }
  const secret = readFileSync(file, 'utf8');
  if (secret === '') {
    console.error(
      `The secret ${owner}/${name} is empty: put it back, or begin anew (docker compose down -v).`,
    );
    process.exit(1);
  }
  return secret;
}

keep('postgres', 'superuser-password', random());
const platform = keep('postgres', 'platform-password', random());
const grafana = keep('postgres', 'grafana-password', random());
const contentServer = keep('postgres', 'content-server-password', random());
const redis = keep('redis', 'password', random());
keep('redis', 'redis.conf', `include /etc/redis/base.conf\nrequirepass ${redis}\n`);
keep('services', 'database-url', `postgres://platform:${platform}@postgres:5432/platform`);
keep('services', 'logs-database-url', `postgres://platform:${platform}@postgres:5432/logs`);
keep('services', 'redis-url', `redis://:${redis}@redis:6379`);
keep('content-server', 'database-url', `postgres://content_server:${contentServer}@postgres:5432/platform`);
keep('auth', 'key-secret', random());
keep('grafana', 'admin-password', random());
keep('grafana', 'logs-database-password', grafana);

for (const [owner, user] of Object.entries(USERS)) {
  chownSync(join(ROOT, owner), user, user);
  chmodSync(join(ROOT, owner), 0o500);
}
console.log('the secrets are there');
