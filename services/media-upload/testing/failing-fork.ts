import { fork } from 'node:child_process';

/**
 * Replaces `fork`. While `failure` is set, no process starts: `fork` throws EAGAIN, or it returns a child that emits
 * 'error' later and never 'exit', as Node.js does on EAGAIN (here by a real spawn of a program that does not exist).
 */
export function createFailingFork(failure?: 'event' | 'throw') {
  const state = { failure };
  const failingFork = ((program: URL, options: object) => {
    if (state.failure === undefined) return fork(program, options);
    if (state.failure === 'event') return fork(program, { ...options, execPath: '/nonexistent/node' });
    throw Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN', syscall: 'spawn' });
  }) as typeof fork;
  return { state, fork: failingFork };
}
