import { createServer } from 'node:http';
import type { Socket } from 'node:net';

/** Plays a wrong server to one connection. */
type Player = (client: Socket) => void;

/** The start of a web server's reply, as from a mistyped port. */
export const text: Player = (client) =>
  void client.once('data', () => client.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'));

export const bytes: Player = (client) =>
  void client.once('data', () => client.end(Buffer.from('1503010002022800ff00ff00ff00ff00', 'hex')));
function httpPlayer(status: number, type: string, body: string): Player {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { 'Content-Type': type }).end(body);
  });
  return (client) => void server.emit('connection', client);
}

/** A web server without the platform's routes. */
export const webServer = (status: number) => httpPlayer(status, 'text/html', `<h1>${status}</h1>`);

/** S3 after the access key was deleted (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html). */
export const s3Refusal = () =>
  httpPlayer(
    403,
    'application/xml',
    '<Error><Code>InvalidAccessKeyId</Code><Message>It does not exist.</Message></Error>',
  );

/**
 * PostgreSQL that refuses each connection (ErrorResponse,
 * https://www.postgresql.org/docs/current/protocol-message-formats.html).
 */
export const postgresRefusal =
  (code: string, message = 'refused by the test'): Player =>
  (client) =>
    void client.once('data', () => {
      const fields = [`SFATAL`, `VFATAL`, `C${code}`, `M${message}`];
      const body = Buffer.from(`${fields.join('\0')}\0\0`);
      const head = Buffer.alloc(5, 'E');
      head.writeInt32BE(body.length + 4, 1);
      client.end(Buffer.concat([head, body]));
    });

/** Counts the complete commands (RESP arrays of bulk strings) and returns the remaining input. */
function commandsOf(input: string): { count: number; rest: string } {
  let [count, rest] = [0, input];
  for (;;) {
    const [head, size] = /^\*(\d+)\r\n/.exec(rest) ?? [];
    if (head === undefined) return { count, rest };
    let at = head.length;
    for (let left = Number(size); left > 0; left -= 1) {
      const [mark, length] = /^\$(\d+)\r\n/.exec(rest.slice(at)) ?? [];
      if (mark === undefined) return { count, rest };
      at += mark.length + Number(length) + 2;
    }
    if (at > rest.length) return { count, rest };
    [count, rest] = [count + 1, rest.slice(at)];
  }
}

/** Redis that replies to every command with this error. */
export const redisRefusal =
  (error: string): Player =>
  (client) => {
    let input = '';
    client.on('data', (chunk) => {
      const { count, rest } = commandsOf(input + chunk.toString('latin1'));
      input = rest;
      client.write(`-${error}\r\n`.repeat(count));
    });
  };
