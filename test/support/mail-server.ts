import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { callbackify } from 'node:util';
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';

/** Returns the token of the link in a mail; undefined if there is none. */
export const tokenIn = (mail: string): string | undefined => /#token=([\w-]{43})\s/.exec(mail)?.[1];

/**
 * Starts a mail server on loopback. It refuses a mail with the status that `refuse` returns for its number, from 1; in
 * reply to the recipient, or to the content if `late`. `options` are further options of the server.
 */
export async function startMailServer({
  port = 0,
  refuse = (_attempt: number): number | undefined => undefined,
  late = false,
  tls = false,
  options = {} as SMTPServerOptions,
} = {}) {
  const mails: { from: string; to: string[]; hello: string; content: string }[] = [];
  let attempts = 0;
  const check = () => {
    const responseCode = refuse((attempts += 1));
    if (responseCode) throw Object.assign(new Error('refused <ann@example.com>'), { responseCode });
  };
  const server = new SMTPServer({
    disabledCommands: tls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    closeTimeout: 1,
    // Prevents a warning that its own certificate is not secret.
    logger: false,
    onRcptTo(_address, _session, done) {
      try {
        if (!late) check();
        done();
      } catch (error) {
        done(error as Error);
      }
    },
    onData: callbackify(async (data: Readable, { envelope, hostNameAppearsAs: hello }: SMTPServerSession) => {
      // As a client shows it: without quoted-printable.
      const content = (await text(data)).replaceAll('=\r\n', '').replaceAll('=3D', '=');
      if (late) check();
      const from = envelope.mailFrom ? envelope.mailFrom.address : '';
      mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), hello, content });
    }),
    ...options,
  });
  server.on('error', () => undefined);
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    attempts: () => attempts,
    to: (address: string) => mails.filter(({ to }) => to.includes(address)).map(({ content }) => content),
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  };
}
export type MailServer = Awaited<ReturnType<typeof startMailServer>>;
