import type { IncomingMessage } from 'node:http';
import { ApiError } from '../errors.ts';

/**
 * Refuses a request with more than one `authorization` or `host`. Node reads the first, a proxy or a log in front may
 * read the last, and they would disagree about who the caller is.
 *
 * @throws ApiError invalid_data
 */
export function refuseDuplicates({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): void {
  let isHostSeen = false;
  let isAuthorizationSeen = false;
  // Names and values in turn.
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index]!;
    if (length !== 'host'.length && length !== 'authorization'.length) continue;
    const name = rawHeaders[index]!.toLowerCase();
    if (name === 'host') {
      if (isHostSeen) throw sentTwice(name);
      isHostSeen = true;
    } else if (name === 'authorization') {
      if (isAuthorizationSeen) throw sentTwice(name);
      isAuthorizationSeen = true;
    }
  }
}

function sentTwice(name: string): ApiError {
  const message = 'expected it once, got it more than once';
  return new ApiError('invalid_data', `\`${name}\`: ${message}`, {
    data: { issues: [{ in: 'header', pointer: `/${name}`, message }] },
  });
}
