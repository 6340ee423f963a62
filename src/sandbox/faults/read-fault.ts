import { type ErrorCode, invalidField } from '../../errors.ts';
import type { AddSandboxFaultRequest } from '../generated/schemas.ts';
import { nearestName } from '../why/nearest.ts';
import { fieldsOf } from './effect-fields.ts';
import type { DocumentedErrors, FaultRule } from './fault-rules.ts';
import { codeOf, requestEffects } from './faults.ts';

/** CHOICE: the delay of a rule that sets none. */
const DEFAULT_DELAY_MS = 1_000;
const DEFAULT_LONG_DELAY_MS = 60_000;
const DEFAULT_BLOCKS = 2;
const DEFAULT_RETRY_AFTER_SECONDS = 1;

/** The maximum delay of a request. A delayed request keeps a connection of the client open. */
const MAX_REQUEST_DELAY_MS = 30_000;

interface FaultContext {
  documentedErrors(): DocumentedErrors;
  /**
   * Returns how a response differs from the API document, with a JSON pointer into the rule. Returns undefined if it
   * does not differ.
   */
  responseFault(
    operation: string,
    status: number,
    body: unknown,
  ): { readonly pointer: string; readonly message: string } | undefined;
}

/**
 * Reads a rule and adds its defaults.
 *
 * @throws ApiError invalid_data for a field that the effect does not use or that is invalid, an unknown operation, an
 * error that no selected operation documents, and a response that cannot be sent.
 */
export function readFault(
  body: AddSandboxFaultRequest,
  { documentedErrors: documented, responseFault }: FaultContext,
): Omit<FaultRule, 'id' | 'hits'> {
  const { effect, probability = 1, count = null } = body;
  const used = fieldsOf[effect];
  for (const field of Object.keys(body)) {
    const isUsed = ['effect', 'probability', 'count', ...used].includes(field);
    if (!isUsed)
      throw invalidField(`/${field}`, `expected no \`${field}\` for \`${effect}\`, which uses ${list(used)}`);
  }
  const isRequest = (requestEffects as readonly string[]).includes(effect);
  const defaultDelayMs = isRequest ? DEFAULT_DELAY_MS : DEFAULT_LONG_DELAY_MS;
  const rule = {
    effect,
    operation: body.operation ?? null,
    app_id: body.app_id ?? null,
    wallet_id: body.wallet_id ?? null,
    event_type: body.event_type ?? null,
    chain: body.chain ?? null,
    probability,
    count,
    code: body.code ?? null,
    is_undocumented: body.is_undocumented ?? false,
    status: effect === 'respond' ? (body.status ?? 200) : null,
    headers: effect === 'respond' ? (body.headers ?? {}) : null,
    ...(body.body === undefined ? {} : { body: body.body }),
    delay_ms: used.includes('delay_ms')
      ? (body.delay_ms ?? Math.min(defaultDelayMs, body.max_delay_ms ?? Infinity))
      : null,
    max_delay_ms: body.max_delay_ms ?? null,
    retry_after_seconds:
      effect === 'rate_limit' ? (body.retry_after_seconds ?? DEFAULT_RETRY_AFTER_SECONDS) : null,
    blocks: used.includes('blocks') ? (body.blocks ?? DEFAULT_BLOCKS) : null,
  };
  if (rule.max_delay_ms !== null && rule.delay_ms !== null && rule.max_delay_ms < rule.delay_ms) {
    throw invalidField(
      '/max_delay_ms',
      `expected at least \`delay_ms\`, ${rule.delay_ms}, got \`${rule.max_delay_ms}\``,
    );
  }
  if (isRequest) {
    const field = rule.max_delay_ms === null ? 'delay_ms' : 'max_delay_ms';
    if ((rule[field] ?? 0) > MAX_REQUEST_DELAY_MS) {
      throw invalidField(
        `/${field}`,
        `expected at most ${MAX_REQUEST_DELAY_MS} for \`${effect}\`, got \`${rule[field]}\``,
      );
    }
    requireKnown(rule, documented());
    if (effect === 'respond') requireResponse(rule, responseFault);
  }
  return rule;
}

/** Headers that the connection determines, or that are derived from the body. */
const OWN_HEADERS = /^(connection|content-length|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/**
 * Requires that the response of a rule can be sent.
 *
 * @throws ApiError for headers that cannot be sent, and for a response that the API document does not allow.
 */
function requireResponse(
  { operation, is_undocumented, status, headers, body }: Omit<FaultRule, 'id' | 'hits'>,
  responseFault: FaultContext['responseFault'],
): void {
  for (const [name, value] of Object.entries(headers ?? {})) {
    const isName = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/i.test(name) && !OWN_HEADERS.test(name);
    const isValue = /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
    if (!isName) throw invalidField('/headers', `expected names of headers of a response, got \`${name}\``);
    if (!isValue) throw invalidField(`/headers/${name}`, 'expected a text without line breaks');
  }
  if (is_undocumented) return;
  const otherwise = 'or `is_undocumented`';
  if (operation === null)
    throw invalidField(
      '/operation',
      `expected the operation whose document allows the response, ${otherwise}`,
    );
  const fault = responseFault(operation, status ?? 200, body);
  if (fault === undefined) return;
  throw invalidField(fault.pointer, `${fault.message}, as \`${operation}\` documents it, ${otherwise}`);
}

/**
 * Requires that the operation exists and documents the error.
 *
 * @throws ApiError for a rule that selects no operation.
 */
function requireKnown(rule: Omit<FaultRule, 'id' | 'hits'>, documented: DocumentedErrors): void {
  const { operation, effect } = rule;
  const known = operation === null ? undefined : documented.get(operation);
  if (operation !== null && known === undefined)
    throw unknownName('/operation', operation, documented.keys());
  if (effect === 'error' && rule.code === null)
    throw invalidField('/code', 'expected an error code for `error`');
  const code = codeOf(rule);
  if (code === undefined) return;
  const all = new Set([...documented.values()].flatMap((errors) => [...errors.keys()]));
  if (!all.has(code)) throw unknownName('/code', code, all);
  if (rule.is_undocumented || known === undefined || known.has(code)) return;
  throw invalidField(
    '/code',
    `expected an error that \`${operation}\` documents (${list([...known.keys()])}), or \`is_undocumented\`, got \`${code}\``,
  );
}

function unknownName(pointer: string, name: string, known: Iterable<ErrorCode | string>) {
  const nearest = nearestName(name, known);
  const question = nearest === undefined ? '' : `; did you mean \`${nearest}\`?`;
  return invalidField(
    pointer,
    `expected ${pointer === '/code' ? 'an error code' : 'an operation'} of the API, got \`${name}\`${question}`,
  );
}

function list(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
