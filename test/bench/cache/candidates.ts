import type { ChildProcess } from 'node:child_process';
import { startPeer } from '../gateway/install.ts';
import { startContentCache } from '../own-services.ts';

export interface CandidateContext {
  auth: string;
  postgres: string;
  logs: string;
  redis: string;
  publicKeyPem: string;
}

/** A service with content-cache's contract. */
export interface Candidate {
  name: string;
  does: string;
  start(port: number, context: CandidateContext): ChildProcess;
}

const ours =
  (settings: Record<string, string> = {}): Candidate['start'] =>
  (port, context) =>
    startContentCache(port, { ...context, kafka: '' }, settings);

const peer =
  (file: string, settings: Record<string, string> = {}): Candidate['start'] =>
  (port, context) =>
    startPeer(file, port, context, { DATABASE_URL: context.postgres, ...settings });

export const caches: Candidate[] = [
  {
    name: 'ours',
    does: 'default settings; also: revocation check for each request, checked parameters, metrics, request ids, time limits',
    start: ours(),
  },
  {
    name: 'bentocache, L2',
    does: 'Redis only; one reader of a key in each process reads the database, the others wait',
    start: peer('bentocache.mjs', { LAYERS: 'l2' }),
  },
  {
    name: 'bentocache, L1 + L2',
    does: 'a memory cache in front of Redis, and a bus by which processes invalidate the memory of the others',
    start: peer('bentocache.mjs', { LAYERS: 'l1+l2' }),
  },
  {
    name: 'cache-manager',
    does: 'with @keyv/redis; wrap(): one reader of a key in each process reads the database, the others wait',
    start: peer('cache-manager.mjs'),
  },
  {
    name: 'GET, SET, DEL',
    does: 'hand-written with ioredis: GET, otherwise the database and SET; a clear is DEL',
    start: peer('cache-aside.mjs', { CLEAR: 'del' }),
  },
];

export interface WayToClear extends Candidate {
  /** Whether a clear scans all keys to find unknown ones. */
  isSearch: boolean;
}

export const waysToClear: WayToClear[] = [
  {
    name: 'ours, none',
    does: 'CACHE_UNMANAGED_KEYS=none: we are the only writer; one script',
    isSearch: false,
    start: ours({ CACHE_UNMANAGED_KEYS: 'none' }),
  },
  {
    name: 'tags',
    does: "as Laravel's RedisTaggedCache: a sorted set of the keys, ZSCAN and DEL; keys that others wrote stay",
    isSearch: false,
    start: peer('cache-aside.mjs', { CLEAR: 'tags' }),
  },
  {
    name: 'ours, sweep',
    does: 'CACHE_UNMANAGED_KEYS=sweep: also keys of other programs, by SCAN; clears that wait share one',
    isSearch: true,
    start: ours({ CACHE_UNMANAGED_KEYS: 'sweep' }),
  },
  {
    name: 'SCAN and DEL',
    does: 'SCAN with a pattern, 1,000 a step, and DEL; each clear has its own',
    isSearch: true,
    start: peer('cache-aside.mjs', { CLEAR: 'scan' }),
  },
  {
    name: 'KEYS and DEL',
    does: 'KEYS with a pattern, and DEL',
    isSearch: true,
    start: peer('cache-aside.mjs', { CLEAR: 'keys' }),
  },
];
