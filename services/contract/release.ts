import { readFileSync } from 'node:fs';

const { version, license } = JSON.parse(
  readFileSync(new URL('package.json', import.meta.url), 'utf8'),
) as Record<'version' | 'license', string>;

/** Version and licence in the `info` of the API documents. */
export const release = {
  version,
  license: { name: license, url: `https://spdx.org/licenses/${license}.html` },
};
