import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { runCommand } from '../../deploy/local/run-command.ts';
import { startHttpServer } from './http-server.ts';
import { startMailServer } from './mail-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

const mailUser = { username: 'platform@example.com', password: 'p@ss/word' };

/** Starts receivers of alerts: Slack's webhook, and a mail server that needs a login over STARTTLS. */
export async function startReceivers() {
  const slackTexts: string[] = [];
  const slack = await startHttpServer(async (request, response) => {
    const { attachments } = (await json(request)) as { attachments: { title: string; text: string }[] };
    slackTexts.push(...attachments.map((one) => `${one.title}\n${one.text}`));
    response.end('ok');
  });
  const folder = temporaryFolder();
  const [certificate, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')] as const;
  const certify = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=DNS:localhost', '-out', certificate, '-keyout', key];
  const { code, output } = await runCommand('openssl', [...certify.split(' '), ...names]);
  if (code !== 0) throw new Error(output);
  const mail = await startMailServer({
    options: {
      disabledCommands: [],
      cert: readFileSync(certificate),
      key: readFileSync(key),
      onAuth({ username, password }, _, done) {
        const isUser = username === mailUser.username && password === mailUser.password;
        done(isUser ? null : new Error('wrong password'), { user: username });
      },
    },
  });
  const login = `${encodeURIComponent(mailUser.username)}:${encodeURIComponent(mailUser.password)}`;
  return {
    settings: {
      slack: `${slack.origin}/services/T0/B0/secret`,
      emailTo: 'ops@example.com, sre@example.com, ',
      smtpUrl: `smtp://${login}@localhost:${mail.port}`,
      mailFrom: 'Für alle <platform@example.com>',
    },
    certificate,
    slackTexts,
    mails: mail.mails,
    async stop() {
      slack.close();
      await mail.close();
    },
  };
}
