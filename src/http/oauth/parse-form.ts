import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from '../../errors.ts';

/** Whether the body is a form. */
export function isForm(headers: IncomingHttpHeaders): boolean {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}

/**
 * The fields of a form, among those that the operation knows. Source: RFC 6749 section 3.2: unknown fields and fields
 * without a value are ignored, and no field may be repeated.
 *
 * @throws ApiError invalid_request
 */
export function parseForm(raw: Buffer, known: readonly string[]): Record<string, string> {
  if (!isUtf8(raw)) throw new ApiError('invalid_request', 'body: the text is not UTF-8');
  const fields: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(raw.toString('utf8'))) {
    if (!known.includes(name) || value === '') continue;
    // PostgreSQL rejects U+0000 in text parameters.
    if (value.includes('\0')) throw new ApiError('invalid_request', `body: \`${name}\` contains U+0000`);
    if (Object.hasOwn(fields, name)) throw new ApiError('invalid_request', `body: \`${name}\` is repeated`);
    fields[name] = value;
  }
  return fields;
}
