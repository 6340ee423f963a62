import { ApiError } from '../errors.ts';
import type { RequestState } from './request-state.ts';
import type { Issue, RequestPart } from './validation-issues.ts';

const NUL = '\0';
const MESSAGE = 'must not contain U+0000';

// Texts that are signed, and neither stored in a column of their own nor looked up. Where a body is stored, it is JSON,
// which escapes the character.
const signedTexts: Readonly<Record<string, readonly string[]>> = {
  walletRpc: ['/params/message', '/params/typed_data'],
  createWalletRpcIntent: ['/params/message', '/params/typed_data'],
  rawSignWallet: ['/params/bytes'],
};

/**
 * Refuses the character U+0000 in every string of a request, because PostgreSQL cannot store or look it up. Throws
 * `invalid_data` with the JSON pointers.
 *
 * CHOICE: except in texts that are only signed, whose signatures cover every character. Property names may contain it,
 * too: they are stored as JSON.
 */
export function refuseNulCharacters(state: RequestState): void {
  const found: Issue[] = [];
  // Headers and JSON cannot contain the raw character, so two searches are enough for almost every request.
  if (state.target.includes('%00')) {
    findNul(state.route?.params, { part: 'path' }, '', found);
    findNul(state.query, { part: 'query' }, '', found);
  }
  if (state.rawBody.length > 0 && state.rawBody.includes('\\u0000')) {
    const signed = signedTexts[state.route?.operation.id ?? ''];
    findNul(state.body, { part: 'body', signed }, '', found);
  }
  const [first] = found;
  if (first === undefined) return;
  const place = first.in === 'body' ? first.pointer || 'body' : first.pointer.slice(1);
  throw new ApiError('invalid_data', `${place}: ${MESSAGE}`, { data: { issues: found } });
}

const MAX_ISSUES = 20;

interface Search {
  readonly part: RequestPart;
  /** Pointers of values that are not searched. */
  readonly signed?: readonly string[] | undefined;
}

function findNul(value: unknown, search: Search, pointer: string, found: Issue[]): void {
  if (found.length === MAX_ISSUES) return;
  if (typeof value === 'string') {
    if (value.includes(NUL)) found.push({ in: search.part, pointer, message: MESSAGE });
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    // RFC 6901 §3
    const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (search.signed?.includes(at) !== true) findNul(member, search, at, found);
  }
}
