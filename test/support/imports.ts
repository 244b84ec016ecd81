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
export function violatedRule({ from, to, typesOnly }: Import): string | undefined {
  const [here, there] = [partOf(from), partOf(to)];
  if (there === undefined || here === undefined) return undefined;
  if (here === there) return insidePart(from, to);
  if (here === 'deploy') return undefined; // deploy starts and seeds all parts
  if (there === 'services/contract' && to.startsWith('@')) {
    const free = typesOnly || isTest(from) || /\/(endpoint|errors|schemas|services)$/.test(to);
    return free || here !== 'services/chassis'
      ? undefined
      : 'the chassis imports only types, endpoint.ts, errors.ts, schemas.ts and services.ts of the contract';
  }
  if (isTest(from) && (there === 'test' || there === 'deploy')) return undefined;
  if (here === 'test') return there === 'deploy' ? undefined : "test/ may not import a service's source";
  if (here === 'services/contract') return 'the contract may not import other parts of the repository';
  if (here === 'services/chassis') return 'the chassis may import only the contract';
  if (there === 'services/chassis' && to === '@content-platform/chassis') return undefined;
  if (isTest(from) && to.startsWith('@content-platform/chassis/testing/')) return undefined;
  return 'a service may import only @content-platform/contract and @content-platform/chassis';
}

/** Within a service, imports point from main to app to endpoints to stores. */
function insidePart(from: string, to: string): string | undefined {
  if (isTest(from) || !/^(gateway|services)\//.test(from)) return undefined;
  if (to.endsWith('/main.ts')) return 'no file may import main.ts: move what you need to another file';
  if (/\/endpoints\//.test(to) && !/\/(app\.ts|endpoints\/[^/]+)$/.test(from))
    return 'only app.ts and other endpoints may import an endpoint';
  if (to.endsWith('/app.ts') && /\/endpoints\/|-store\.ts$/.test(from))
    return 'endpoints and stores may not import app.ts';
  return undefined;
}
