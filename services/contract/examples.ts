import { readFileSync } from 'node:fs';

/** A recorded call of an endpoint and its reply. */
export interface Example {
  path?: Record<string, string | number>;
  query?: Record<string, string | number>;
  headers?: Record<string, string>;
  body?: unknown;
  status: number;
  reply?: unknown;
}

export const examplesFile = new URL('examples.json', import.meta.url);

/** Reads the example of each endpoint by the endpoint's name. The tests in test/contract record them. */
export function readExamples(): Record<string, Example> {
  return JSON.parse(readFileSync(examplesFile, 'utf8')) as Record<string, Example>;
}
