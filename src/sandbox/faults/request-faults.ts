import type { ErrorCode } from '../../errors.ts';
import type { FindRequestFault, RequestFault, SelectableRequest } from '../../ports/fault-injection.ts';
import type { SandboxFaultEffect } from '../generated/schemas.ts';
import type { DocumentedErrors } from './documented-errors.ts';
import type { FaultHit, FaultRule, FaultRules, Selection } from './fault-rules.ts';

/** The effects of rules for requests. */
export const requestEffects = [
  'latency',
  'error',
  'rate_limit',
  'cut_before_commit',
  'cut_after_commit',
  'truncated_body',
  'slow_body',
] as const satisfies readonly SandboxFaultEffect[];

type RequestEffect = (typeof requestEffects)[number];

const effects: ReadonlySet<SandboxFaultEffect> = new Set(requestEffects);

/** Finds the rule that applies to a request. */
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

/** The error code that a rule injects. */
export function codeOf({ effect, code }: Pick<FaultRule, 'effect' | 'code'>): ErrorCode | undefined {
  if (effect === 'rate_limit') return 'too_many_requests';
  return code === null ? undefined : (code as ErrorCode);
}

/** Whether a segment of the path, a value of the query or a text of the body is the id. */
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
    case 'error': {
      const code = codeOf(rule)!;
      const example = documented().get(operation)?.get(code);
      return { ruleId, effect, code, message: example?.message, data: example?.data };
    }
    default:
      return { ruleId, effect };
  }
}
