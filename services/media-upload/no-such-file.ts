import { HttpError } from '@content-platform/chassis';

/** The same whether it is somebody else's or nobody's. */
export function noSuchFile(): HttpError<'not_found'> {
  return new HttpError(404, 'not_found', 'You have no such file.');
}
