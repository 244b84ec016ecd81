import { pino, type DestinationStream, type Logger as Pino } from 'pino';
import { currentContext, activeSpan } from './context.ts';

export type Logger = Pino;

const sensitive =
  'authorization cookie set-cookie password token access_token refresh_token client_secret secret'.split(' ');
const jwt = /eyJ[\w-]*\.[\w-]*\.[\w-]*/g;
const urlPassword = /(\w+:\/\/[^\s:/@]*:)[^\s@/]+@/g;

function clean(value: string): string {
  return value.replace(jwt, '[token]').replace(urlPassword, '$1[secret]@');
}

/** Removes secrets from the text of an error, because it may quote a URL or a header. */
function cleanError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, errors = '' } = error as { code?: unknown; errors?: unknown };
  return {
    type: error.constructor.name,
    // The reason may be in `errors` alone: of Node if it can connect to no address, of kafkajs if it creates no topic.
    message: clean([error.message, String(errors)].filter(Boolean).join(': ')),
    // Elasticsearch refuses a line in which a field has another type than before.
    ...(code === undefined ? {} : { code: String(code) }),
    stack: clean(error.stack ?? ''),
    ...(error.cause === undefined ? {} : { cause: cleanError(error.cause) }),
  };
}

/** Opens stdout. While it cannot be written, up to 4 MB of lines wait, and further ones are lost. */
function openStdout(): DestinationStream {
  const stdout = pino.destination({ maxLength: 4 * 1024 * 1024 });
  // Without this listener, a full disk ends the process, and at its end flushSync() retries the failed write forever.
  stdout.on('error', () => (stdout.flushSync = () => undefined));
  return stdout;
}

/** Writes JSON lines to stdout with time, level, service, message and, within a request or trace, their ids. */
export function createLogger(service: string, level = 'info', destination = openStdout()): Logger {
  return pino(
    {
      level,
      base: { service },
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      mixin: () => {
        const context = currentContext();
        const traceId = activeSpan()?.traceId;
        return { ...(context && { request_id: context.requestId }), ...(traceId && { trace_id: traceId }) };
      },
      redact: { paths: sensitive.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: '[secret]' },
      serializers: { err: cleanError, error: cleanError },
      hooks: {
        logMethod(args, method) {
          method.apply(this, args.map((arg) => (typeof arg === 'string' ? clean(arg) : arg)) as typeof args);
        },
      },
    },
    destination,
  );
}
