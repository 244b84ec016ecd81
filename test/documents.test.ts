import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from '../deploy/local/config.ts';

const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .filter((page) => existsSync(join(ROOT, page)));

const proseOf = (page: string): string =>
  readFileSync(join(ROOT, page), 'utf8')
    .replace(/^( *)(```+)[^]*?^ *\2 *$/gm, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()<>]/g, ''));

/** Returns the anchors that GitHub makes of a page's headings. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of proseOf(page).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const text = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = text.replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n += 1) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}

/** Matches pages of the repository's host, for example the CI runs of a badge. */
const isHostPage = (page: string, link: string) => page === 'README.md' && link.startsWith('../../actions/');

function linksOf(page: string): string[] {
  const links = proseOf(page).matchAll(/\]\(<?([^\s)>]+)>?(?: "[^"]*")?\)|(?:src|srcset|href)="([^"]+)"/g);
  return [...links]
    .map(([, inline, html]) => (inline ?? html)!)
    .filter((link) => !/^([a-z]+:|\/\/)/i.test(link) && !isHostPage(page, link));
}

function problemOf(page: string, link: string): string | undefined {
  const [path, anchor] = link.split('#') as [string, string?];
  const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), decodeURIComponent(path)));
  if (!existsSync(join(ROOT, target))) return `${page}: ${link} does not exist`;
  if (anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor))
    return `${page}: ${link}: ${target} has no such heading`;
  return undefined;
}

test.each(pages)('%s has no broken link', (page) => {
  expect(linksOf(page).flatMap((link) => problemOf(page, link) ?? [])).toEqual([]);
});

test('README.md has at most 10 KB', () => {
  expect(readFileSync(join(ROOT, 'README.md')).length).toBeLessThanOrEqual(10_240);
});
