import { parseArgs } from 'node:util';
import type { Command } from './command.ts';

/** Runs `verify-audit`. Throws an error with the first fault. */
export const verifyAudit: Command = async (args, { withAccounts }) => {
  const { values } = parseArgs({ args, options: { contains: { type: 'string' } } });
  const { contains } = values;
  if (contains !== undefined && !/^[1-9]\d{0,15}:[0-9a-f]{64}$/.test(contains))
    throw new Error('--contains must be SEQ:HASH, as verify-audit printed it');
  const seqOf = (text: string) => Number(text.split(':')[0]);
  let [links, newest, compared] = [0, '', ''];
  const result = await withAccounts(({ audit }) =>
    audit.verify(({ seq, hash }) => {
      links += 1;
      newest = `${seq}:${hash}`;
      if (contains !== undefined && seqOf(contains) === seq) compared = newest;
    }),
  );
  if ('fault' in result) throw new Error(`The audit log was changed. First fault: ${result.fault}.`);
  if (contains !== undefined && contains !== compared)
    throw new Error(
      compared
        ? `The audit log was rewritten: link ${seqOf(contains)} is ${compared}.`
        : `The audit log has no link ${seqOf(contains)}: it was cut off, or the link is older than a year.`,
    );
  const queued = result.queued ? ` ${result.queued} new entries wait for their link.` : '';
  return `The audit log is intact: ${links} links.${queued}${newest && `\nThe newest link, for --contains: ${newest}`}`;
};
