import { ApiError } from '../errors.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { Issue, RequestPart } from './validation-issues.ts';

const NUL = '\0';
const MESSAGE = 'must not contain U+0000';

/**
 * Refuses the character U+0000 in every text of a request: PostgreSQL's texts cannot hold it, so that it could be
 * neither stored nor looked up. Throws `invalid_data` naming each place.
 *
 * CHOICE: in texts that are only signed too. Every method that signs text takes its bytes in hex or base64 as well,
 * and one rule for every field is known before the request is sent. Names of properties are free: they are stored as
 * JSON, which escapes them.
 */
export function refuseNul(exchange: HttpExchange): void {
  const issues: Issue[] = [];
  // Neither header nor JSON can hold the character itself, so that almost every request is done with two searches.
  if (exchange.target.includes('%00')) {
    findNul(exchange.route?.params, 'path', '', issues);
    findNul(exchange.query, 'query', '', issues);
  }
  if (exchange.rawBody.includes('\\u0000')) findNul(exchange.body, 'body', '', issues);
  const [first] = issues;
  if (first === undefined) return;
  const place = first.in === 'body' ? first.pointer || 'body' : first.pointer.slice(1);
  throw new ApiError('invalid_data', `${place}: ${MESSAGE}`, { data: { issues } });
}

const MAX_ISSUES = 20;

function findNul(value: unknown, part: RequestPart, pointer: string, issues: Issue[]): void {
  if (issues.length === MAX_ISSUES) return;
  if (typeof value === 'string') {
    if (value.includes(NUL)) issues.push({ in: part, pointer, message: MESSAGE });
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    // RFC 6901 §3
    findNul(member, part, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, issues);
  }
}
