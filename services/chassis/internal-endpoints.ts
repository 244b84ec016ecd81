import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import express, { Router, type Request } from 'express';
import type { z } from 'zod';
import type { ServiceName } from '@content-platform/contract/services';
import { beginRequestSpan, endRequestSpan, inSpan, requestId, runInContext } from './context.ts';
import { HttpError, invalidFields, toHttpError } from './http-error.ts';
import type { Logger } from './logger.ts';
import { statusOf } from './metrics.ts';
import { bearerToken, internalScope, type TokenVerifier } from './tokens.ts';

const parseJson = promisify(express.json({ limit: 65_536 }));

interface InternalEndpoint<Input> {
  /** Schema of the query of a GET, or of the JSON body of a POST. */
  schema: z.ZodType<Input>;
  /** Returns an object or JSON as a stream; undefined: 204. `service`: name of the caller; empty if `isOpen`. */
  answer: (input: Input, service: string) => Promise<object | undefined>;
  /** Callers need no token. */
  isOpen?: true;
  /** The only service that may call the endpoint; others get 403. */
  only?: ServiceName;
}

/**
 * Creates the endpoints of an internal listener, which services call with `createServiceFetch`. Errors have no body:
 * 401 or 403 without a service's token, 400 or 413 for an unreadable body, 422, an HttpError's status below 500, else
 * 503.
 */
export function createInternalEndpoints(tokens: TokenVerifier, logger: Logger) {
  const router = Router();

  async function verifyService(request: Request): Promise<string> {
    const caller = await tokens.verify(bearerToken(request.get('authorization')));
    const isService = (caller.scopes as ReadonlySet<string>).has(internalScope);
    if (caller.kind === 'machine' && isService) return caller.clientId.replace(/^service:/, '');
    throw new HttpError('insufficient_scope', 'The endpoint is for services.');
  }

  function serve<Input>(
    method: 'GET' | 'POST',
    path: string,
    { schema, answer, isOpen, only }: InternalEndpoint<Input>,
  ): void {
    const isGet = method === 'GET';
    router[isGet ? 'get' : 'post'](path, (request, response) => {
      const id = requestId(request.get('x-request-id'));
      const context = { requestId: id, route: path, database: { calls: 0, ms: 0 } };
      // Services that poll send no trace: otherwise each poll would begin one.
      const isTraced = request.headers['traceparent'] !== undefined;
      const span = isTraced ? beginRequestSpan(method, path, request.headers) : undefined;
      response.once('close', () => endRequestSpan(span, statusOf(response)));

      function logCut(error: NodeJS.ErrnoException | null): void {
        // This code: the caller has disconnected.
        if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE')
          logger.warn({ error, route: path }, 'reply cut off');
      }
      async function respond(): Promise<void> {
        try {
          const service = isOpen ? '' : await verifyService(request);
          if (only && service !== only) throw new HttpError('insufficient_scope', `Only ${only} may call.`);
          if (!isGet) await parseJson(request, response);
          const input = schema.safeParse(isGet ? request.query : request.body);
          if (!input.success) throw invalidFields([]);
          const reply = await answer(input.data, service);
          if (reply instanceof Readable) pipeline(reply, response.type('json'), logCut);
          else if (reply) response.json(reply);
          else response.status(204).end();
        } catch (error) {
          const { status } = toHttpError(error);
          // An unavailable store is an HttpError, and not logged: otherwise each poll of a service would add a line.
          if (!(error instanceof HttpError) && status >= 500)
            logger.error({ error, route: path }, 'request failed');
          response.status(status < 500 ? status : 503).end();
        }
      }
      void runInContext(context, () => inSpan(span, respond));
    });
  }
  return { router, serve };
}
