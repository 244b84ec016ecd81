import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import sharp from 'sharp';
import { announce, closeEvents } from '../events.ts';
import { newLetter } from '../letters.ts';
import { newPdf } from '../media.ts';
import { closeRecords } from '../records.ts';
import type { Caller } from './roles.ts';

/** Creates data that no request can create: letters of the callers, and failed events. */
export async function makeFixtures(callers: readonly Caller[]): Promise<void> {
  for (const { id } of callers.flatMap(({ peers }) => peers))
    for (const state of ['open', 'open', 'draft', 'sent'] as const) await newLetter({ userId: id, state });
  for (let count = 0; count < 40; count += 1) await announce(`no JSON ${count}`);
  await closeEvents();
  await closeRecords();
}

const kinds = ['jpeg', 'png', 'webp', 'avif', 'gif'] as const;

/** Writes valid upload files: several of each media type, in folders named by the type. */
export async function writeFiles(folder: string): Promise<void> {
  for (let count = 0; count < 3; count += 1) {
    for (const kind of kinds) {
      const raw = { width: 8, height: 6, channels: 3 as const };
      const image = await sharp(randomBytes(8 * 6 * 3), { raw })
        .toFormat(kind)
        .toBuffer();
      write(join(folder, 'image', kind), count, image);
    }
    write(join(folder, 'application', 'pdf'), count, newPdf());
  }
}

function write(folder: string, name: number, bytes: Uint8Array): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, String(name)), bytes);
}
