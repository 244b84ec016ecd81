import { parseArgs } from 'node:util';
import { readKeySecret, readNewKeySecret } from '../config.ts';
import { rotateKeySecret as rotate } from '../keys/key-rotation.ts';
import { CommandError, type Command } from './command.ts';

const restart = `Now set AUTH_KEY_SECRET to what AUTH_KEY_SECRET_NEW is, in every place where the auth service is
configured, and restart its processes. Those that run go on signing until then, but cannot start with the old one.`;

/** Runs `rotate-key-secret`. */
export const rotateKeySecret: Command = async (args, { withAccounts }) => {
  parseArgs({ args, options: {} });
  const [current, next] = [readKeySecret(), readNewKeySecret()];
  if (current === next) throw new CommandError('AUTH_KEY_SECRET_NEW is the same as AUTH_KEY_SECRET.');
  const sealed = await withAccounts((accounts) => rotate(accounts, current, next));
  const said =
    sealed === 'done'
      ? 'All keys and secrets are encrypted with AUTH_KEY_SECRET_NEW already.'
      : `Encrypted ${sealed} keys and secrets with AUTH_KEY_SECRET_NEW.`;
  return `${said}\n${restart}`;
};
