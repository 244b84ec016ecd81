import type { ChildProcess } from 'node:child_process';
import { freePort } from '../../../deploy/local/ports.ts';
import { startGateway } from '../own-services.ts';
import { startPeer } from './install.ts';
import { nginx, startNginx } from './nginx.ts';

export interface CandidateContext {
  upstream: string;
  redis: string;
  publicKeyPem: string;
  folder: string;
  /** Requests a second of all callers together, above which nginx refuses; default: none. */
  limit?: number;
}

export interface Candidate {
  name: string;
  does: string;
  hasDuties: boolean;
  /** Starts the candidate on `port`. Resolves with all of its processes. */
  start: (port: number, context: CandidateContext) => Promise<ChildProcess[]>;
}

const ours =
  (logLevel: string): Candidate['start'] =>
  async (port, { upstream, redis }) => [startGateway(port, { upstream, redis }, { LOG_LEVEL: logLevel })];

const peer =
  (file: string, hasDuties: boolean): Candidate['start'] =>
  async (port, context) => [
    startPeer(file, port, context, { UPSTREAM: context.upstream, DUTIES: hasDuties ? '1' : '0' }),
  ];

const nginxWithAuth: Candidate['start'] = async (port, context) => {
  const authPort = await freePort();
  const [authenticator] = await peer('nginx-auth.mjs', true)(authPort, context);
  const { folder, upstream, limit } = context;
  return [startNginx(folder, port, upstream, authPort, limit), authenticator!];
};

const common = 'limit in Redis';
const withDuties: Omit<Candidate, 'hasDuties'>[] = [
  {
    name: 'ours',
    does: `token cached, revocation checked each time; limit counted in the process and added to Redis every 200 ms; a log line for failures only (default); also: target check, security headers, CORS, header hygiene, readiness of instances, time limits`,
    start: ours('info'),
  },
  {
    name: 'ours, a line each',
    does: 'the same with LOG_LEVEL=debug, which logs each request',
    start: ours('debug'),
  },
  {
    name: 'fast-gateway',
    does: `token cached (fast-jwt); ${common} (express-rate-limit); a log line for each request (pino); histogram; allowlist by prefix`,
    start: peer('fast-gateway.mjs', true),
  },
  {
    name: '@fastify/http-proxy',
    does: `token cached (@fastify/jwt with cache); ${common} (@fastify/rate-limit); a log line for each request; histogram (fastify-metrics); allowlist by prefix`,
    start: peer('fastify-proxy.mjs', true),
  },
  {
    name: 'express + hpm',
    does: `token verified each time (jsonwebtoken); ${common} (express-rate-limit); a log line for each request (pino-http); histogram (express-prom-bundle); allowlist by route`,
    start: peer('express-proxy.mjs', true),
  },
  {
    name: 'nginx, auth_request',
    does: 'token cached by a separate Node process, whose CPU is included (fast-jwt); limit in its memory; a log line for each request with the duration, no histogram; allowlist by regular expression',
    start: nginxWithAuth,
  },
];

const bare: Omit<Candidate, 'hasDuties'>[] = [
  { name: 'express + undici', does: 'the bare pipe', start: peer('undici-pipe.mjs', false) },
  { name: 'fast-gateway', does: 'forwards alone', start: peer('fast-gateway.mjs', false) },
  { name: '@fastify/http-proxy', does: 'forwards alone', start: peer('fastify-proxy.mjs', false) },
  { name: 'express + hpm', does: 'forwards alone', start: peer('express-proxy.mjs', false) },
  {
    name: 'nginx, plain',
    does: 'forwards alone',
    start: async (port, { folder, upstream }) => [startNginx(folder, port, upstream)],
  },
];

const isThere = ({ name }: { name: string }): boolean => nginx !== undefined || !name.startsWith('nginx');

export const candidates: Candidate[] = [
  ...withDuties.map((each) => ({ ...each, hasDuties: true })),
  ...bare.map((each) => ({ ...each, hasDuties: false })),
].filter(isThere);
