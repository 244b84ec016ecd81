import type { z } from 'zod';
import { authConfig } from '../services/auth/config.ts';
import { contentCacheConfig } from '../services/content-cache/config.ts';
import { devicesConfig } from '../services/devices/config.ts';
import { lettersConfig } from '../services/letters/config.ts';
import { mediaUploadConfig } from '../services/media-upload/config.ts';
import { pulseConfig } from '../services/pulse/config.ts';
import { gatewayConfig } from '../gateway/config.ts';

/** What each process reads. */
export const processes: Record<string, z.ZodRawShape> = {
  gateway: gatewayConfig,
  auth: authConfig,
  'content-cache': contentCacheConfig,
  'media-upload': mediaUploadConfig,
  devices: devicesConfig,
  letters: lettersConfig,
  pulse: pulseConfig,
};

function defaultOf(schema: z.ZodType): string {
  const result = schema.safeParse(undefined);
  if (!result.success) return 'required';
  const { data } = result;
  if (data === undefined || (Array.isArray(data) && data.length === 0)) return '';
  return `\`${String(data)}\``;
}

/** The settings of all processes as a Markdown table, from the schemas that read them. */
export function configurationTable(): string {
  const rows = new Map<string, { by: string[]; value: Set<string>; description: string }>();
  for (const [process, shape] of Object.entries(processes)) {
    for (const [name, schema] of Object.entries(shape as Record<string, z.ZodType>)) {
      const row = rows.get(name) ?? { by: [], value: new Set(), description: schema.description ?? '' };
      row.by.push(process);
      row.value.add(defaultOf(schema));
      rows.set(name, row);
    }
  }
  const all = Object.keys(processes).length;
  const lines = [...rows].map(([name, { by, value, description }]) => {
    const who = by.length === all ? 'all' : by.join(', ');
    return `| ${name} | ${who} | ${[...value].join(', ')} | ${description} |`;
  });
  return ['| variable | read by | default | meaning |', '|---|---|---|---|', ...lines].join('\n');
}
