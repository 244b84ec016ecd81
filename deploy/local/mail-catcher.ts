import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { callbackify } from 'node:util';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { freePort, HOST } from './ports.ts';

/** Starts an SMTP server that delivers nothing and writes each mail to a file in `folder`. */
export async function startMailCatcher(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData: callbackify(async (stream: Readable, { envelope }: SMTPServerSession) => {
      const to = envelope.rcptTo.map(({ address }) => address.replace(/[^\w.@+-]/g, '_')).join();
      const name = `${new Date().toISOString().replaceAll(':', '-')}-${to}.eml`;
      writeFileSync(join(folder, name), await buffer(stream), { mode: 0o600 });
    }),
  });
  // A client that disconnects must not end the launcher.
  server.on('error', () => {});
  const port = await freePort();
  await once(server.listen(port, HOST), 'listening');
  return {
    settings: {
      SMTP_URL: `smtp://${HOST}:${port}?tls=never`,
      MAIL_FROM: 'Content Platform <no-reply@example.com>',
      // Where an app in development usually runs. It is so short that the link fits on one line of the mail.
      PASSWORD_RESET_URL: 'http://localhost:3000/',
    },
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  };
}
