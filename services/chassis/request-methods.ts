import type { Endpoint } from '@content-platform/contract';

/**
 * Lists the methods that the endpoint answers. HEAD comes with GET (RFC 9110 §9.1): as GET, but without a body. The
 * gateway and the services both use this list.
 */
export function requestMethods({ method, noHead }: Endpoint): string[] {
  return method === 'GET' && !noHead ? ['GET', 'HEAD'] : [method];
}
