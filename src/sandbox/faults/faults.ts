import type { ErrorCode } from '../../errors.ts';
import type {
  DelayDelivery,
  DrawTransactionFault,
  FindRequestFault,
  RequestFault,
  SelectableEvent,
  SelectableRequest,
  TransactionFault,
} from '../../ports/requests.ts';
import type { WebhookRequest, WebhookSender } from '../../ports/webhooks.ts';
import type { SandboxFaultEffect } from '../generated/schemas.ts';
import type { DocumentedErrors, FaultHit, FaultRule, FaultRules, Selection } from './fault-rules.ts';

export const requestEffects = [
  'latency',
  'error',
  'rate_limit',
  'respond',
  'cut_before_commit',
  'cut_after_commit',
  'truncated_body',
  'slow_body',
] as const satisfies readonly SandboxFaultEffect[];

type RequestEffect = (typeof requestEffects)[number];

const effects: ReadonlySet<SandboxFaultEffect> = new Set(requestEffects);

/** Returns a function that finds the fault for a request. */
export function findRequestFault(rules: FaultRules, documented: () => DocumentedErrors): FindRequestFault {
  return (request) => {
    const hit = rules.draw(effects, (rule, selection) => selects(rule, { request, selection, documented }));
    return hit && faultOf(hit, request.operation, documented);
  };
}

interface Occasion {
  readonly request: SelectableRequest;
  readonly selection: Selection;
  readonly documented: () => DocumentedErrors;
}

function selects(rule: FaultRule, { request, selection, documented }: Occasion): boolean {
  const { operation, appId } = request;
  if (rule.operation !== null && rule.operation !== operation) return false;
  if (rule.app_id !== null && rule.app_id !== appId) return false;
  if (rule.wallet_id !== null && !selection.walletNames?.some((name) => names(request, name))) return false;
  const code = codeOf(rule);
  return code === undefined || rule.is_undocumented || documented().get(operation)?.has(code) === true;
}

export function codeOf({ effect, code }: Pick<FaultRule, 'effect' | 'code'>): ErrorCode | undefined {
  if (effect === 'rate_limit') return 'too_many_requests';
  return code === null ? undefined : (code as ErrorCode);
}

/** Returns whether the wallet's id is a segment of the path, a value in the query, or a string in the body. */
function names({ target, rawBody }: SelectableRequest, walletId: string): boolean {
  const isInTarget = target.split(/[/?&=]/).some((part) => part === encodeURIComponent(walletId));
  return isInTarget || (rawBody.length > 0 && Buffer.from(rawBody).includes(JSON.stringify(walletId)));
}

function faultOf(
  { rule, delayMs }: FaultHit,
  operation: string,
  documented: () => DocumentedErrors,
): RequestFault {
  const ruleId = rule.id;
  const effect = rule.effect as RequestEffect;
  switch (effect) {
    case 'latency':
    case 'slow_body':
      return { ruleId, effect, delayMs };
    case 'rate_limit':
      return { ruleId, effect, retryAfterSeconds: rule.retry_after_seconds ?? 1 };
    case 'respond':
      return {
        ...{ ruleId, effect, status: rule.status ?? 200, headers: rule.headers ?? {} },
        ...(rule.body === undefined ? {} : { body: rule.body }),
      };
    case 'error': {
      const code = codeOf(rule)!;
      const example = documented().get(operation)?.get(code);
      return { ruleId, effect, code, message: example?.message, data: example?.data };
    }
    default:
      return { ruleId, effect };
  }
}

const transactionEffects: ReadonlySet<SandboxFaultEffect> = new Set<SandboxFaultEffect>([
  'transaction_revert',
  'transaction_drop',
  'transaction_delay',
  'transaction_reorganization',
]);

/** Returns a function that finds the fault for a transaction of a simulated chain. */
export function drawTransactionFault(rules: FaultRules): DrawTransactionFault {
  return ({ caip2, signers }) => {
    const hit = rules.draw(transactionEffects, (rule, { chain, address }) => {
      if (chain !== undefined && chain !== caip2) return false;
      return rule.wallet_id === null || (address !== undefined && signers.includes(address));
    });
    return hit && transactionFaultOf(hit);
  };
}

function transactionFaultOf({ rule, delayMs }: FaultHit): TransactionFault {
  switch (rule.effect) {
    case 'transaction_revert':
      return { effect: 'revert' };
    case 'transaction_drop':
      return { effect: 'drop' };
    case 'transaction_delay':
      return { effect: 'delay', delayMs };
    default:
      return { effect: 'reorganization', blocks: rule.blocks ?? 1 };
  }
}

const deliveryEffects: ReadonlySet<SandboxFaultEffect> = new Set<SandboxFaultEffect>([
  'webhook_delay',
  'webhook_reorder',
]);
const attemptEffects: ReadonlySet<SandboxFaultEffect> = new Set<SandboxFaultEffect>([
  'webhook_duplicate',
  'webhook_bad_signature',
]);

/** Returns a function that finds the delay of a new delivery. */
export function delayByRules(rules: FaultRules): DelayDelivery {
  return (event) => {
    const hit = rules.draw(deliveryEffects, selecting(event));
    return hit && { delayMs: hit.delayMs, keepsOrder: hit.rule.effect === 'webhook_delay' };
  };
}

/** Wraps a sender. Attempts that a rule selects are sent twice, or with a wrong signature. */
export function withAttemptFaults(sender: WebhookSender, rules: FaultRules): WebhookSender {
  return {
    ...sender,
    async send(request) {
      const { event, bodyText: payload } = request;
      const hit = rules.draw(attemptEffects, selecting({ ...event, payload }));
      if (hit === undefined) return sender.send(request);
      if (hit.rule.effect === 'webhook_bad_signature') return sender.send(withBadSignature(request));
      // Both attempts are sent at the same time. One after the other, they could take longer than the endpoint is
      // claimed.
      const [outcome] = await Promise.all([sender.send(request), sender.send(request)]);
      return outcome;
    },
  };
}

function selecting({ type, appId, payload }: SelectableEvent) {
  return (rule: FaultRule, { eventType, walletId }: Selection): boolean => {
    if (eventType !== undefined && eventType !== type) return false;
    if (rule.app_id !== null && rule.app_id !== appId) return false;
    return rule.wallet_id === null || payload.includes(`"${walletId}"`);
  };
}

/** Returns the request with wrong signatures of the right length: the first byte of each is inverted. */
function withBadSignature(request: WebhookRequest): WebhookRequest {
  const names = ['webhook-signature', 'svix-signature'];
  const headers = Object.entries(request.headers).map(([name, value]) => [
    name,
    names.includes(name) ? value.split(' ').map(invert).join(' ') : value,
  ]);
  return { ...request, headers: Object.fromEntries(headers) };
}

/** Inverts the first byte of a signature `v1,<base64>`. */
function invert(signature: string): string {
  const [version = '', text = ''] = signature.split(',');
  const bytes = Buffer.from(text, 'base64');
  bytes[0] = (bytes[0] ?? 0) ^ 0xff;
  return `${version},${bytes.toString('base64')}`;
}
