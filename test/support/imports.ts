import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, normalize } from 'node:path';

export interface Import {
  from: string;
  /** The imported file, or the package name as written. */
  to: string;
  typesOnly: boolean;
}

const importStatement = /^\s*(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm;
const dynamicImport = /\bimport(?:\.meta\.resolve)?\(\s*['`]([^'`$]+)/g;

export function importsOf(file: string, text = readFileSync(file, 'utf8')): Import[] {
  const resolve = (to: string): string => (to.startsWith('.') ? normalize(`${dirname(file)}/${to}`) : to);
  const found = [...text.matchAll(importStatement)].map(([, type, to = '']) => ({
    to,
    typesOnly: type !== undefined,
  }));
  const dynamic = [...text.matchAll(dynamicImport)].map(([, to = '']) => ({ to, typesOnly: false }));
  return [...found, ...dynamic].map(({ to, typesOnly }) => ({ from: file, to: resolve(to), typesOnly }));
}

/** Returns the part of the repository that contains a file or workspace package; undefined for external packages. */
function partOf(path: string): string | undefined {
  const own = /^@content-platform\/([^/]+)/.exec(path)?.[1];
  if (own) return own === 'gateway' ? own : `services/${own}`;
  return /^(gateway|services\/[^/]+|test|deploy)\//.exec(path)?.[1];
}

/** Returns the name of the imported npm package; undefined for own files and Node's built-in modules. */
export function packageOf(to: string): string | undefined {
  if (/\.(ts|json)$/.test(to) || isBuiltin(to)) return undefined;
  return /^(?:@[^/]+\/)?[^/]+/.exec(to)?.[0];
}

export const isTest = (file: string): boolean => /\.test\.ts$|\/testing(\.ts$|\/)/.test(file);

/** Returns the import rule that is violated; undefined for an allowed import. */
export function complaint({ from, to, typesOnly }: Import): string | undefined {
  const [here, there] = [partOf(from), partOf(to)];
  if (there === undefined || here === undefined) return undefined;
  if (here === there) return insidePart(from, to);
  if (here === 'deploy') return undefined; // deploy starts and seeds all parts
  if (there === 'services/contract' && to.startsWith('@')) {
    const free =
      here !== 'services/chassis' || typesOnly || isTest(from) || /contract\/(errors|services)$/.test(to);
    return free ? undefined : "the chassis imports only the contract's types, errors and services";
  }
  if (isTest(from) && (there === 'test' || there === 'deploy')) return undefined;
  if (here === 'test') return there === 'deploy' ? undefined : "test/ imports no service's source";
  if (here === 'services/contract') return 'the contract imports nothing of ours';
  if (here === 'services/chassis') return 'the chassis imports nothing of ours but the contract';
  if (there === 'services/chassis' && to === '@content-platform/chassis') return undefined;
  if (isTest(from) && to.startsWith('@content-platform/chassis/testing/')) return undefined;
  return 'a service imports the contract and the chassis, by their names, and nothing else of ours';
}

/** Within a service, imports point from main to app to endpoints to stores. */
function insidePart(from: string, to: string): string | undefined {
  if (isTest(from) || !/^(gateway|services)\//.test(from)) return undefined;
  if (to.endsWith('/main.ts')) return 'main.ts is only started';
  if (/\/endpoints\//.test(to) && !/\/(app\.ts|endpoints\/[^/]+)$/.test(from))
    return 'endpoints are put together in app.ts';
  if (to.endsWith('/app.ts') && /\/endpoints\/|-store\.ts$/.test(from))
    return 'app.ts stands above endpoints and stores';
  return undefined;
}
