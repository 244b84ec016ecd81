import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../local/config.ts';

/** A container of docker-compose.yml, as far as tests look at it. */
export interface Container {
  image?: string;
  environment?: Record<string, string | number | undefined>;
  networks: string[];
  volumes?: string[];
  ports?: string[];
  profiles?: string[];
  mem_limit?: string;
}

interface Compose {
  services: Record<string, Container>;
  networks: Record<string, { internal?: boolean } | null>;
}

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
export const composeText = read('docker-compose.yml');
export const compose = parse(composeText, { merge: true }) as Compose;
export const hostAccessText = read('deploy/compose/host-access.yml');
export const hostAccess = parse(hostAccessText) as Compose;
export const edgeText = read('deploy/compose/edge.yml');
