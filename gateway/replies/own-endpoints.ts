import { readFileSync } from 'node:fs';
import { etagOf, HttpError, matchesIfNoneMatch } from '@content-platform/chassis';
import { asyncapi } from '@content-platform/contract/asyncapi';
import { openapi } from '@content-platform/contract/openapi';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import type { GatewayResponse, Step } from '../request-context.ts';
import type { Refuse } from './errors.ts';
import type { Upstream } from '../upstream/upstream.ts';

const readDocsFile = (name: string) => readFileSync(new URL(`docs/${name}`, import.meta.url));
const readSwagger = (name: string) => readFileSync(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)));

/** Creates the handler that returns this content, or 304 if the client has the current version. */
function serve(type: string, content: string | Buffer, headers: Record<string, string> = {}): RequestHandler {
  const body = Buffer.from(content);
  const etag = etagOf(body);
  return (request, response) => {
    response.set({ 'Cache-Control': 'public, no-cache', ETag: etag, ...headers });
    // Ends the measured time: how long the file takes depends on the client's network.
    response.locals['answeredAt'] = performance.now();
    if (matchesIfNoneMatch(request.headers['if-none-match'], etag)) response.status(304).end();
    else response.set({ 'Content-Type': type, 'Content-Length': String(body.length) }).end(body);
  };
}

/** Builds the page's Content-Security-Policy. The page sends its requests to `publicUrl`. */
function pagePolicy(publicUrl: string): string {
  const { origin } = new URL(publicUrl);
  return [
    "default-src 'none'",
    "script-src 'self'",
    // Swagger UI renders Markdown with style attributes.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    `connect-src 'self' ${origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Creates the handlers of the API documents and of the page that shows them, by the endpoint's name. */
function createDocuments(publicUrl: string): Record<string, RequestHandler> {
  const json = (value: unknown) => serve('application/json; charset=utf-8', JSON.stringify(value));
  const script = 'text/javascript; charset=utf-8';
  const assets = new Map<string, RequestHandler>([
    ['start.js', serve(script, readDocsFile('start.js'))],
    ['swagger-ui-bundle.js', serve(script, readSwagger('swagger-ui-bundle.js'))],
    ['swagger-ui.css', serve('text/css; charset=utf-8', readSwagger('swagger-ui.css'))],
    ['favicon-32x32.png', serve('image/png', readSwagger('favicon-32x32.png'))],
  ]);
  return {
    openapiDocument: json(openapi(publicUrl)),
    asyncapiDocument: json(asyncapi()),
    docs: serve('text/html; charset=utf-8', readDocsFile('index.html'), {
      'Content-Security-Policy': pagePolicy(publicUrl),
    }),
    docsAsset(request, response, next) {
      const { path } = (response as GatewayResponse & Response).locals;
      const asset = assets.get(path.slice(path.lastIndexOf('/') + 1));
      if (!asset) throw new HttpError('not_found', 'The file was not found.');
      return asset(request, response, next);
    },
  };
}

/** Creates the handler of /health, which lists the reachable services. The status is always 200: the gateway is up. */
function showHealth(upstreams: ReadonlyMap<string, Pick<Upstream, 'isUp'>>): RequestHandler {
  return async (_request, response) => {
    const states = await Promise.all(
      [...upstreams].map(async ([name, { isUp }]) => [name, await isUp()] as const),
    );
    response.set('Cache-Control', 'no-store').json({
      status: states.every(([, isUp]) => isUp) ? 'ok' : 'degraded',
      services: Object.fromEntries(states.map(([name, isUp]) => [name, isUp ? 'up' : 'down'])),
    });
  };
}

/** Creates the step of each endpoint that the gateway answers itself, with express, by the endpoint's name. */
export function createOwnEndpoints(
  publicUrl: string,
  upstreams: ReadonlyMap<string, Pick<Upstream, 'isUp'>>,
  refuse: Refuse,
): Record<string, Step> {
  const handlers = { health: showHealth(upstreams), ...createDocuments(publicUrl) };
  const toStep = (handler: RequestHandler): Step => {
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.use(handler);
    app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) =>
      refuse(response as Response & GatewayResponse, error),
    );
    return (request, response) => {
      for (const [name, value] of Object.entries(response.locals.replyHeaders))
        response.setHeader(name, value!);
      app(request, response);
    };
  };
  return Object.fromEntries(Object.entries(handlers).map(([name, handler]) => [name, toStep(handler)]));
}
