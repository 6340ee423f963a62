/** The parts of HTTP Basic credentials. */
export interface BasicCredentials {
  readonly appId: string;
  readonly secret: string;
}

/**
 * RFC 7617: `Basic` and base64 of `id:secret`. The id contains no colon; neither part contains control characters.
 */
export function parseBasic(header: string): BasicCredentials | undefined {
  const encoded = /^basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  // PostgreSQL rejects U+0000 in text parameters.
  if (text.includes('\0')) return undefined;
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : { appId: text.slice(0, colon), secret: text.slice(colon + 1) };
}
