import { ApiError } from '../errors.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { Issue, RequestPart } from './validation-issues.ts';

const NUL = '\0';
const MESSAGE = 'must not contain U+0000';

/**
 * Refuses the character U+0000 in every string of a request, because PostgreSQL cannot store or look it up. Throws
 * `invalid_data` with the JSON pointers.
 *
 * CHOICE: this includes strings that are only signed. One rule for all fields is easier to follow, and every method
 * that signs text also accepts bytes as hex or base64. Property names may contain it: they are stored as JSON, which
 * escapes it.
 */
export function refuseNul(exchange: HttpExchange): void {
  const issues: Issue[] = [];
  // Headers and JSON cannot contain the raw character, so two searches are enough for almost every request.
  if (exchange.target.includes('%00')) {
    findNul(exchange.route?.params, 'path', '', issues);
    findNul(exchange.query, 'query', '', issues);
  }
  if (exchange.rawBody.length > 0 && exchange.rawBody.includes('\\u0000'))
    findNul(exchange.body, 'body', '', issues);
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
