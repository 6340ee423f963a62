import type { SecurityScheme } from './open-api.ts';
import type { RequestMessage } from './validate-message.ts';

/** Whether a request has all credentials of one alternative. Their values are not checked. */
export function hasCredentials(
  alternatives: readonly (readonly SecurityScheme[])[],
  request: RequestMessage,
): boolean {
  return (
    alternatives.length === 0 ||
    alternatives.some((schemes) => schemes.every((scheme) => isSent(scheme, request)))
  );
}

function isSent({ type, scheme, name = '', in: place }: SecurityScheme, request: RequestMessage): boolean {
  const { headers, target } = request;
  if (type === 'apiKey') {
    if (place === 'query') return new URLSearchParams(target.split('?')[1] ?? '').has(name);
    if (place === 'cookie') return `; ${headers.cookie ?? ''}`.includes(`; ${name}=`);
    return headers[name.toLowerCase()] !== undefined;
  }
  // Certificates of clients are not read.
  if (type === 'mutualTLS') return true;
  const wanted = type === 'http' ? (scheme ?? '') : 'bearer';
  return `${headers.authorization ?? ''}`.toLowerCase().startsWith(`${wanted.toLowerCase()} `);
}
