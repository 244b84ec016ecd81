import { readFileSync } from 'node:fs';
import type { ServiceName } from '@content-platform/contract';
import { stack } from '../../../test/support/stack.ts';

/** Returns the environment of a running process, which an intruder in that process reads. */
export function environmentOf(name: ServiceName): Record<string, string> {
  const text = readFileSync(`/proc/${stack().services[name]!.pid}/environ`, 'utf8');
  return Object.fromEntries(text.split('\0').map((line) => line.split(/=(.*)/s).slice(0, 2)));
}
