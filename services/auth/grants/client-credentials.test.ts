import { expect, test } from '@jest/globals';
import { HttpError } from '@content-platform/chassis';
import { readClientCredentials } from './client-credentials.ts';

const base64 = (text: string | Buffer) => Buffer.from(text as string).toString('base64');

test.each([
  ['cms:secret', { name: 'cms', secret: 'secret' }],
  ['cms:se:cr:et', { name: 'cms', secret: 'se:cr:et' }],
  ['cms:', { name: 'cms', secret: '' }],
  ['c%3Ams:a%20b+c%2Bd', { name: 'c:ms', secret: 'a b c+d' }],
  ['cms:p%C3%A4ss', { name: 'cms', secret: 'päss' }],
  ['cms:päss', { name: 'cms', secret: 'päss' }],
  ['cms:100%25', { name: 'cms', secret: '100%' }],
])('reads Basic of %j as %j', (pair, expected) => {
  expect(readClientCredentials(`Basic ${base64(pair)}`, {})).toEqual(expected);
  expect(readClientCredentials(`bAsIc  ${base64(pair)}`, {})).toEqual(expected);
});

test.each([
  '',
  'Basic',
  'Basic ',
  'Basic ***',
  'Basic Y21zOng= more',
  `Basic ${base64('cms')}`,
  `Basic ${base64('cms:100%')}`,
  `Basic ${base64('cms:%ff')}`,
  `Basic ${base64(Buffer.from([0x63, 0x3a, 0xff]))}`,
  'Digest username="cms"',
])('refuses the header %j', (authorization) => {
  const read = () => readClientCredentials(authorization, {});
  expect(read).toThrow(HttpError);
  expect(read).toThrow(expect.objectContaining({ status: 401, error: 'invalid_client' }));
});
