import { type AmountUnit, amountText, unitOf } from '../../../engine/assets/amount-units.ts';
import type {
  AggregationGroupBy,
  AggregationMetric,
  CreateAggregationRequest,
} from '../../../generated/schemas.ts';
import type { SandboxAggregation } from '../../../sandbox/generated/schemas.ts';
import { groupedText } from '../names.ts';
import type { Condition } from '../policies/conditions.ts';
import { exampleAbi, readObject } from '../policies/draft.ts';

/** An aggregation while it is edited. The server checks what it contains. */
export type AggregationDraft = Pick<
  CreateAggregationRequest,
  'name' | 'method' | 'metric' | 'conditions' | 'group_by' | 'window'
>;

export const firstAggregation: AggregationDraft = {
  name: 'Sent in a day',
  method: 'eth_signTransaction',
  metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
  window: { type: 'rolling', seconds: 86_400 },
};

export const countedMethods = ['eth_signTransaction', 'eth_signUserOperation'] as const;

/** The metrics that the form offers. */
export const metrics: readonly (readonly [title: string, metric: AggregationMetric])[] = [
  ['the native asset that is sent', firstAggregation.metric],
  [
    'the tokens of a transfer',
    {
      ...{ field_source: 'ethereum_calldata', field: 'transfer.value', function: 'sum' },
      abi: exampleAbi as NonNullable<AggregationMetric['abi']>,
    },
  ],
];

/** The groupings that the form offers. Each group of a wallet has a sum of its own. */
export const groupings: readonly (readonly [title: string, groups: readonly AggregationGroupBy[]])[] = [
  ['one sum for each wallet', []],
  ['one for each receiver', [{ field_source: 'ethereum_transaction', field: 'to' }]],
  ['one for each chain', [{ field_source: 'ethereum_transaction', field: 'chain_id' }]],
];

/** The windows that the form offers, in seconds. The API accepts any number from the first to the last. */
export const windows: readonly (readonly [title: string, seconds: number])[] = [
  ['an hour', 3_600],
  ['a day', 86_400],
  ['two days', 172_800],
  ['three days', 259_200],
];

/** Returns the index of the choice that equals a part of the draft, or -1 if the JSON contains something else. */
export function choiceOf<Part>(choices: readonly (readonly [string, Part])[], part: Part): number {
  const wanted = JSON.stringify(part);
  return choices.findIndex(([, each]) => JSON.stringify(each) === wanted);
}

/** Returns the draft with these groups. Without groups, it has no member `group_by`. */
export function withGroups(draft: AggregationDraft, groups: readonly AggregationGroupBy[]): AggregationDraft {
  const { group_by: _, ...others } = draft;
  return groups.length === 0 ? others : { ...others, group_by: [...groups] };
}

/** Returns the token contract whose calls the draft counts. Empty if it counts those of all contracts. */
export function tokenOf({ conditions = [] }: AggregationDraft): string {
  const found = conditions.find(isTokenCondition);
  return found === undefined ? '' : String(found.value);
}

/** Changes the token contract whose calls count. If `token` is empty, the calls of all contracts count. */
export function withToken(draft: AggregationDraft, token: string): AggregationDraft {
  const { conditions = [], ...others } = draft;
  const kept = conditions.filter((each) => !isTokenCondition(each));
  const value = token.trim();
  if (value === '' && kept.length === 0) return others;
  if (value === '') return { ...others, conditions: kept };
  const added = { field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value } as const;
  return { ...others, conditions: [...kept, added] };
}

function isTokenCondition({ field_source: source, field, operator }: Condition): boolean {
  return source === 'ethereum_transaction' && field === 'to' && operator === 'eq';
}

/**
 * Reads the JSON of an aggregation as far as the form needs it.
 *
 * @throws Error, which names the place.
 */
export function readAggregation(text: string): AggregationDraft {
  const draft = readObject(text, 'the aggregation');
  for (const name of ['metric', 'window'] as const) {
    if (typeof draft[name] !== 'object' || draft[name] === null) throw new Error(`expected \`${name}\``);
  }
  for (const name of ['conditions', 'group_by'] as const) {
    if (draft[name] !== undefined && !Array.isArray(draft[name])) {
      throw new Error(`expected ${name} to be a list`);
    }
  }
  return draft as object as AggregationDraft;
}

type Stored = Pick<SandboxAggregation, 'metric' | 'conditions' | 'limits'>;

/** Returns the unit of an aggregation's sums, or undefined if they are not amounts of a known asset. */
export function unitOfSums({
  metric,
  conditions,
}: Pick<Stored, 'metric' | 'conditions'>): AmountUnit | undefined {
  return unitOf(metric as object as Condition, conditions as object[] as Condition[]);
}

/** Formats a sum in the unit of its asset, such as `0.25 ETH`. Without a unit, formats a number with separators. */
export function sumText(sum: string, unit: AmountUnit | undefined): string {
  const amount = unit === undefined ? undefined : amountText(sum, unit);
  if (amount !== undefined) return `${groupedText(amount)} ${unit!.symbol}`;
  return /^\d{1,100}$/.test(sum) ? groupedText(sum) : sum;
}

/**
 * Returns the lowest limit that a policy sets: the most that an ALLOW rule permits, or the least that a DENY rule
 * forbids. Undefined if no policy sets a limit.
 */
export function lowestLimit({ limits }: Pick<Stored, 'limits'>): string | undefined {
  const bounds = limits
    .filter(({ action, operator }) => (action === 'ALLOW' ? ['lt', 'lte'] : ['gt', 'gte']).includes(operator))
    .flatMap(({ values }) => values)
    .filter((value) => /^\d{1,100}$/.test(value));
  return bounds.reduce<string | undefined>(
    (least, each) => (least === undefined || BigInt(each) < BigInt(least) ? each : least),
    undefined,
  );
}

const PARTS = 1000n;

/** Returns the share of a limit that is used, from 0 to 1. */
export function usedShare(sum: string, limit: string): number {
  const [used, most] = [BigInt(sum), BigInt(limit)];
  if (used >= most) return 1;
  return Number((used * PARTS) / most) / Number(PARTS);
}
