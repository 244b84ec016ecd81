import { expect, test } from '@jest/globals';
import { seal, unseal } from './sealing.ts';

const plain = Buffer.from('the private key');

test('unseals only with the same secret and context', async () => {
  const sealed = await seal(plain, 'secret', 'kid-1');
  expect(sealed.includes(plain)).toBe(false);
  expect((await unseal(sealed, 'secret', 'kid-1')).toString()).toBe(plain.toString());
  await expect(unseal(sealed, 'secreT', 'kid-1')).rejects.toThrow();
  await expect(unseal(sealed, 'secret', 'kid-2')).rejects.toThrow();
});

test('seals the same value differently each time', async () => {
  expect(await seal(plain, 'secret', 'kid')).not.toEqual(await seal(plain, 'secret', 'kid'));
});

test('refuses a changed byte in salt, nonce, tag or ciphertext, and a truncated value', async () => {
  const sealed = await seal(plain, 'secret', 'kid');
  for (const position of [3, 20, 30, 50]) {
    const changed = Buffer.from(sealed);
    changed[position]! ^= 1;
    await expect(unseal(changed, 'secret', 'kid')).rejects.toThrow();
  }
  for (const end of [-1, 30])
    await expect(unseal(sealed.subarray(0, end), 'secret', 'kid')).rejects.toThrow();
});
