// Creates the secrets of the stack in volumes and keeps existing secrets. Each volume is for one kind of container and
// belongs to the user of that container.
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
// Mounted beside this file.
import { withReceivers } from './alert-receivers.ts';
import { services } from './services.ts';

const ROOT = '/secrets';
/** The folders in /secrets, which are volumes of docker-compose.yml, with the user ID of the image that reads each. */
const USERS = {
  ...Object.fromEntries(services.map(({ name }) => [name, 1000])),
  owner: 1000,
  'owner/roles': 1000,
  'content-server': 1000,
  postgres: 999,
  redis: 999,
  kafka: 1000,
  alertmanager: 65534,
  grafana: 472,
};

function refuse(message) {
  console.error(message);
  process.exit(1);
}

const { ALERT_EMAIL_TO: emailTo, MAIL_FROM: mailFrom, BIND_ADDRESS: address = '' } = process.env;
// The marker file shows that the demo accounts exist. Their passwords are public, so only loopback is safe.
if (existsSync('/demo/data-is-there') && !/^(127\.|localhost$|\[?::1\]?$)/.test(address))
  refuse(
    `This stack has demo data, and BIND_ADDRESS is ${address}: leave it at 127.0.0.1, or delete all data (docker compose --profile demo down -v).`,
  );

/** Returns the content of the file that a setting of Compose names; empty if it is not set. */
function fileOf(mount, setting) {
  try {
    return readFileSync(join('/settings', mount), 'utf8').trim();
  } catch {
    // Docker makes a folder of a path that does not exist.
    return refuse(`${setting} must be the path of a file. If Docker has made a folder there, delete it.`);
  }
}

function alertmanagerConfig() {
  const webhook = fileOf('webhook', 'ALERT_WEBHOOK_FILE');
  const slack = fileOf('slack-url', 'ALERT_SLACK_URL_FILE');
  const smtpUrl = fileOf('smtp-url', 'SMTP_URL_FILE');
  try {
    const text = readFileSync('/alertmanager.yml', 'utf8');
    return withReceivers(text, { webhook, slack, emailTo, smtpUrl, mailFrom });
  } catch (error) {
    return refuse(error.message);
  }
}

const random = () => randomBytes(24).toString('hex');

function write(folder, name, value) {
  const file = join(ROOT, folder, name);
  const next = `${file}.next`;
  // fsync before rename: data encrypted with the secret may survive a power loss, so the secret must survive it too.
  writeFileSync(next, value, { mode: 0o400, flush: true });
  chownSync(next, USERS[folder], USERS[folder]);
  renameSync(next, file);
}

/** Writes the secret unless it exists; returns the stored secret. */
function ensureSecret(folder, name, value) {
  const file = join(ROOT, folder, name);
  if (!existsSync(file)) write(folder, name, value);
  const secret = readFileSync(file, 'utf8');
  if (secret === '')
    refuse(`The secret ${folder}/${name} is empty: restore it, or delete all data (docker compose down -v).`);
  return secret;
}

ensureSecret('postgres', 'superuser-password', random());
const platform = ensureSecret('postgres', 'platform-password', random());
const grafana = ensureSecret('postgres', 'grafana-password', random());
const contentServer = ensureSecret('postgres', 'content-server-password', random());
const redis = ensureSecret('redis', 'password', random());
ensureSecret('owner', 'database-url', `postgres://platform:${platform}@postgres:5432/platform`);
ensureSecret('owner', 'logs-database-url', `postgres://platform:${platform}@postgres:5432/logs`);
mkdirSync(join(ROOT, 'owner/roles'), { recursive: true });
const redisUsers = [];
for (const { name, stores, redis: rules } of services) {
  const role = `platform_${name.replaceAll('-', '_')}`;
  const logs = ensureSecret(name, 'logs-database-url', `postgres://${role}:${random()}@postgres:5432/logs`);
  ensureSecret('owner/roles', name, logs);
  if (stores.includes('postgres')) ensureSecret(name, 'database-url', logs.replace(/logs$/, 'platform'));
  if (!rules) continue;
  const { password } = new URL(ensureSecret(name, 'redis-url', `redis://${name}:${random()}@redis:6379`));
  redisUsers.push(`user ${name} on #${createHash('sha256').update(password).digest('hex')} ${rules}\n`);
}
// Written at each start, because a release may change the rights. Redis reads it when it starts.
write('redis', 'users.conf', `include /etc/redis/base.conf\nrequirepass ${redis}\n${redisUsers.join('')}`);
const pairs = services
  .filter(({ hasSecret }) => hasSecret)
  .map(({ name }) => `${name}:${ensureSecret(name, 'service-secret', random())}`);
// Written at each start, because a release may add services.
write('auth', 'service-secrets', pairs.join(','));
const contentServerUrl = `postgres://content_server:${contentServer}@postgres:5432/platform`;
ensureSecret('content-server', 'database-url', contentServerUrl);
// Written at each start: if one of the two volumes was lost, both copies agree again.
for (const user of ['content-cache', 'content-server'])
  write('kafka', `${user}-password`, ensureSecret(user, 'kafka-password', random()));
ensureSecret('auth', 'key-secret', random());
ensureSecret('grafana', 'admin-password', random());
ensureSecret('grafana', 'logs-database-password', grafana);
// Written at each start, because the settings may have changed.
write('alertmanager', 'alertmanager.yml', alertmanagerConfig());

for (const [folder, user] of Object.entries(USERS)) {
  chownSync(join(ROOT, folder), user, user);
  chmodSync(join(ROOT, folder), 0o500);
}
// edge.yml mounts a volume in which Caddy stores keys and certificates.
if (existsSync(join(ROOT, 'caddy'))) chownSync(join(ROOT, 'caddy'), 1000, 1000);
console.log('secrets ready');
