import type { Endpoint } from '@content-platform/contract';

/**
 * Returns the methods that the endpoint supports. GET includes HEAD (RFC 9110 §9.1), which is GET without a body. The
 * gateway and the services both use this list.
 */
export function requestMethods({ method, noHead }: Endpoint): string[] {
  return method === 'GET' && !noHead ? ['GET', 'HEAD'] : [method];
}

/**
 * Compares path templates for sorting: a fixed segment comes before a parameter, so that `/jobs/retry` is not the job
 * `retry`. The gateway and the services must find the same endpoint for a path.
 */
export function comparePaths(a: string, b: string): number {
  // `~` sorts after every other character.
  const [first, second] = [a, b].map((path) => path.replaceAll('/:', '/~')) as [string, string];
  return first < second ? -1 : first > second ? 1 : 0;
}
