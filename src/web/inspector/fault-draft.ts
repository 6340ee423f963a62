import { type FaultField, fieldsOf } from '../../sandbox/faults/effect-fields.ts';
import type {
  AddSandboxFaultRequest,
  SandboxFault,
  SandboxFaultEffect,
} from '../../sandbox/generated/schemas.ts';

/** A field of the form. */
export type DraftField = FaultField | 'probability' | 'count';

/** The input of the form. The text of a field is kept when another effect is selected. */
export type FaultDraft = Readonly<Partial<Record<DraftField, string>>>;

export const fieldTitles: Readonly<Record<DraftField, string>> = {
  operation: 'Operation',
  app_id: 'App id',
  wallet_id: 'Wallet id',
  event_type: 'Event type',
  chain: 'Chain (CAIP-2)',
  probability: 'Probability (0.25 or 25%)',
  count: 'At most (times)',
  code: 'Error code',
  is_undocumented: 'Undocumented ones too',
  status: 'Status',
  headers: 'Headers (JSON)',
  body: 'Body (JSON)',
  delay_ms: 'Delay (ms)',
  max_delay_ms: 'Longest delay (ms)',
  retry_after_seconds: 'Retry after (s)',
  blocks: 'Blocks later',
};

const numbers: ReadonlySet<DraftField> = new Set<DraftField>([
  'probability',
  'count',
  'status',
  'delay_ms',
  'max_delay_ms',
  'retry_after_seconds',
  'blocks',
]);

/** The effects, grouped by their targets. */
export const effectGroups: readonly { readonly title: string; readonly effects: SandboxFaultEffect[] }[] = [
  { title: 'Requests', effects: effectsWith('operation') },
  { title: 'Transactions', effects: effectsWith('chain') },
  { title: 'Webhook deliveries', effects: effectsWith('event_type') },
];

function effectsWith(field: FaultField): SandboxFaultEffect[] {
  return (Object.keys(fieldsOf) as SandboxFaultEffect[]).filter((effect) => fieldsOf[effect].includes(field));
}

export function formFields(effect: SandboxFaultEffect): readonly DraftField[] {
  return [...fieldsOf[effect], 'probability', 'count'];
}

/**
 * Returns the rule that the form describes. Empty fields, and fields that the effect does not use, are omitted.
 *
 * @throws Error if a field that must be a number, or JSON, is not.
 */
export function faultRequest(effect: SandboxFaultEffect, draft: FaultDraft): AddSandboxFaultRequest {
  const given = formFields(effect).flatMap((field): [string, unknown][] => {
    const text = draft[field]?.trim() ?? '';
    return text === '' ? [] : [[field, readField(field, text)]];
  });
  return { effect, ...Object.fromEntries(given) };
}

function readField(field: DraftField, text: string): unknown {
  if (field === 'is_undocumented') return text === 'true';
  if (field === 'headers' || field === 'body') return JSON.parse(text);
  if (!numbers.has(field)) return text;
  const isShare = field === 'probability' && text.endsWith('%');
  const number = Number(isShare ? text.slice(0, -1) : text);
  if (!Number.isFinite(number)) throw new Error(`${fieldTitles[field]}: expected a number, got \`${text}\``);
  return isShare ? number / 100 : number;
}

/** Describes the requests, transactions or deliveries to which a rule applies. */
export function selectionText(fault: SandboxFault): string {
  const parts = (['operation', 'app_id', 'wallet_id', 'chain', 'event_type'] as const).flatMap((field) =>
    fault[field] === null ? [] : [`${field.replace(/_(id|type)$/, '')} ${fault[field]}`],
  );
  return parts.join(', ') || 'everything';
}

/** Describes the effect of a rule, such as `error unavailable` or `latency 200–2000 ms`. */
export function effectText(fault: SandboxFault): string {
  const { effect, code, status, delay_ms: delay, max_delay_ms: most, blocks } = fault;
  const retryAfter = fault.retry_after_seconds;
  return [
    effect.replaceAll('_', ' '),
    ...(code === null ? [] : [code]),
    ...(status === null ? [] : [String(status)]),
    ...(fault.is_undocumented ? ['(also where not documented)'] : []),
    ...(delay === null ? [] : [most === null ? `${delay} ms` : `${delay}–${most} ms`]),
    ...(retryAfter === null ? [] : [`retry after ${retryAfter} s`]),
    ...(blocks === null ? [] : [`${blocks} blocks later`]),
  ].join(' ');
}

/** Describes a rule's probability and its number of hits, such as `25%, 1 of 3`. */
export function hitsText({
  probability,
  count,
  hits,
}: Pick<SandboxFault, 'probability' | 'count' | 'hits'>): string {
  const share = probability === 1 ? '' : `${Math.round(probability * 1e4) / 100}%, `;
  return `${share}${hits}${count === null ? '' : ` of ${count}`}`;
}
