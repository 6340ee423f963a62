import { hash } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { PolicyAction, PolicyFacts } from '../../../engine/policy/action.ts';
import {
  type AggregationDefinition,
  type CompiledAggregation,
  type Contribution,
  compileAggregation,
} from '../../../engine/policy/aggregation.ts';
import { exceedsWork, MAX_COMPARISONS } from '../../../engine/policy/comparison-limit.ts';
import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import { exactSum } from '../../../storage/sql-functions.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';

// HOT: runs for every signature under an aggregation (bench `policy`).

const MS_PER_SECOND = 1000;
const COUNTED_METHODS: ReadonlySet<string> = new Set(['eth_signTransaction', 'eth_signUserOperation']);

/** Returns whether an aggregation may count an action. If not, its totals are `nothingCounted`. */
export function isCounted({ method }: Pick<PolicyAction, 'method'>): boolean {
  return COUNTED_METHODS.has(method);
}

/**
 * The totals of the app's aggregations during one request. `record` adds the contribution of the request, in the
 * transaction in which it is signed.
 */
export interface AggregationTotals {
  /**
   * Returns the recorded total of the window plus the contribution of this request. Returns `unreadable` if the
   * contribution cannot be decoded, and undefined if no aggregation with this id counts the action.
   */
  totalOf(aggregationId: string): bigint | 'unreadable' | undefined;
  /** Records the contribution of the request. Call it in the transaction that signs. */
  record(): Promise<void>;
}

/** The totals for an action that no aggregation counts. */
export const nothingCounted: AggregationTotals = { totalOf: () => undefined, record: async () => undefined };

/**
 * CHOICE: the maximum number of groups to which one request contributes. The specification gives none. Each group is
 * locked and summed separately, and PostgreSQL has a few thousand locks for all transactions.
 */
const MAX_GROUPS = 500;
/**
 * CHOICE: the maximum number of calls of one request that an aggregation counts. The limit on comparisons can refuse a
 * request with fewer calls.
 */
const MAX_COUNTED_UNITS = 1000;

interface Entry extends Contribution {
  readonly aggregationId: string;
}

const compiled = new LRUCache<string, { text: string; aggregation: CompiledAggregation }>({ max: 1000 });

/**
 * Reads the totals that apply to an action and locks their groups until the transaction ends. Of two concurrent
 * requests, the second one sees the record of the first. If the cap allows only one of them, only one passes.
 *
 * @throws ApiError invalid_data for a request with more calls or groups than the limits allow.
 */
export async function openRunningTotals(
  context: Pick<OperationContext, 'app' | 'em' | 'ids' | 'nowMs'>,
  walletId: string,
  action: PolicyAction,
  rows?: readonly CountedAggregation[],
): Promise<AggregationTotals> {
  // The lock and the sum are sent together. The sum runs once the lock is acquired, so it sees everything that was
  // committed before.
  const hold: Hold = (aggregationId, groupKey) =>
    lockName(context.em, 'totals', `${aggregationId}:${groupKey}`, { isDeferred: true });
  const { totals, entries } = await readTotals(context, walletId, action, { hold, rows });
  return {
    totalOf: (aggregationId) => totals.get(aggregationId),
    record: () => recordEntries(context, entries),
  };
}

/** Reads the totals like `openRunningTotals`, but without locks. The result cannot record a contribution. */
export async function peekRunningTotals(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  walletId: string,
  action: PolicyAction,
): Promise<Pick<AggregationTotals, 'totalOf'>> {
  const { totals } = await readTotals(context, walletId, action, { hold: async () => undefined });
  return { totalOf: (aggregationId) => totals.get(aggregationId) };
}

/** Totals that were read without locks. */
export interface UnlockedTotals extends Pick<AggregationTotals, 'totalOf'> {
  /** Reads the totals again with `openRunningTotals`. Returns undefined if nothing counts the action. */
  lock(): Promise<AggregationTotals | undefined>;
}

/**
 * Reads the totals like `openRunningTotals`, but in two steps: now without locks, and under locks when the caller calls
 * `lock`. Between the steps, the caller can wait for the key store without holding a lock.
 *
 * @throws ApiError what `openRunningTotals` throws.
 */
export async function beginRunningTotals(
  context: Pick<OperationContext, 'app' | 'em' | 'ids' | 'nowMs' | 'acquireMutex'>,
  walletId: string,
  action: PolicyAction,
): Promise<UnlockedTotals> {
  const place = `${walletId} ${action.method}`;
  const { rows, known } = await aggregationsWithSum(context, action.method, lastGroups.get(place));
  const { totals, entries } = await readTotals(context, walletId, action, {
    hold: async () => undefined,
    ...{ rows, known },
  });
  noteGroup(place, entries);
  return {
    totalOf: (aggregationId) => totals.get(aggregationId),
    async lock() {
      if (entries.length === 0) return undefined;
      await context.acquireMutex?.(`running totals of ${walletId}`);
      return openRunningTotals(context, walletId, action, rows);
    },
  };
}

/** The columns of an aggregation that counting needs. */
export interface CountedAggregation {
  readonly id: string;
  readonly definition: string;
  readonly window_seconds: number;
}

const selectAggregations = prepareQuery<{ appId: string }, CountedAggregation>((database, { appId }) =>
  database
    .selectFrom('aggregations')
    .select(['id', 'definition', 'window_seconds'])
    .where('app_id', '=', appId)
    .orderBy('id'),
);

/** Returns the app's aggregations that can apply to a method. */
export async function aggregationsFor(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  method: string,
): Promise<readonly CountedAggregation[]> {
  if (!COUNTED_METHODS.has(method)) return [];
  return (await selectAggregations(em, { appId: app.id })).rows;
}

/** One group of an aggregation: a wallet and one combination of values of `group_by`. */
interface Group {
  readonly aggregationId: string;
  readonly groupKey: string;
}

/** Caches the last group of each wallet and method. The next action usually adds to the same group. */
const lastGroups = new LRUCache<string, Group>({ max: 10_000 });

function noteGroup(place: string, entries: readonly Entry[]): void {
  const [first] = entries;
  if (first === undefined || entries.some((entry) => !isSameGroup(entry, first))) return;
  const { aggregationId, groupKey } = first;
  lastGroups.set(place, { aggregationId, groupKey });
}

function isSameGroup(one: Group, other: Group): boolean {
  return one.aggregationId === other.aggregationId && one.groupKey === other.groupKey;
}

interface GroupSum extends Group {
  readonly sum: bigint;
}

interface SumInput extends Group {
  readonly appId: string;
  readonly nowMs: number;
}

const selectAggregationsWithSum = prepareQuery<SumInput, CountedAggregation & { sum: string | null }>(
  (database, { appId, aggregationId, groupKey, nowMs }) =>
    database
      .selectFrom('aggregations')
      .select(['id', 'definition', 'window_seconds'])
      .select(({ case: when, selectFrom }) =>
        when()
          .when('aggregations.id', '=', aggregationId)
          .then(
            selectFrom('aggregation_records as record')
              .whereRef('record.aggregation_id', '=', 'aggregations.id')
              .where('record.group_key', '=', groupKey)
              .where(
                'record.recorded_at_ms',
                '>',
                sql<number>`cast(${nowMs} as bigint) - cast(aggregations.window_seconds as bigint) * ${sql.lit(MS_PER_SECOND)}`,
              )
              .select(exactSum(database, 'record.amount').as('sum')),
          )
          .end()
          .as('sum'),
      )
      .where('app_id', '=', appId)
      .orderBy('id'),
);

/**
 * Reads the aggregations together with the recorded sum of the group that the action probably adds to. A separate
 * statement for the sum would cost another round trip on PostgreSQL.
 */
async function aggregationsWithSum(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  method: string,
  group: Group | undefined,
): Promise<{ rows: readonly CountedAggregation[]; known?: GroupSum }> {
  if (group === undefined || !COUNTED_METHODS.has(method)) {
    return { rows: await aggregationsFor(context, method) };
  }
  const { app, em, nowMs } = context;
  const { rows } = await selectAggregationsWithSum(em, { ...group, appId: app.id, nowMs });
  const row = rows.find(({ id }) => id === group.aggregationId);
  return row === undefined ? { rows } : { rows, known: { ...group, sum: BigInt(row.sum ?? 0) } };
}

type Hold = (aggregationId: string, groupKey: string) => Promise<void>;

interface ReadOptions {
  /** Called before each group is summed, to lock the group. */
  readonly hold: Hold;
  /** The result of `aggregationsFor`, if the caller has already read it. */
  readonly rows?: readonly CountedAggregation[] | undefined;
  /** A sum that was read together with `rows`, if any. */
  readonly known?: GroupSum | undefined;
}

async function readTotals(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  walletId: string,
  action: PolicyAction,
  options: ReadOptions,
): Promise<{ totals: ReadonlyMap<string, bigint | 'unreadable'>; entries: readonly Entry[] }> {
  const totals = new Map<string, bigint | 'unreadable'>();
  const entries: Entry[] = [];
  const rows = options.rows ?? (await aggregationsFor(context, action.method));
  requireCountable(rows, action, context.nowMs);
  let groups = 0;
  for (const row of rows) {
    const added = contributionsOf(row, action, context.nowMs).map((contribution) => ({
      aggregationId: row.id,
      // CHOICE: totals are kept per wallet, and within a wallet per value of `group_by`.
      groupKey: `${walletId}:${storedKey(contribution.groupKey)}`,
      amount: contribution.amount,
    }));
    entries.push(...added);
    groups += new Set(added.map(({ groupKey }) => groupKey)).size;
    if (groups > MAX_GROUPS) {
      throw invalidField('/params', `expected at most ${MAX_GROUPS} groups of running totals, got more`);
    }
    totals.set(row.id, await totalWith(context, row, added, options));
  }
  return { totals, entries };
}

/**
 * Refuses a request that is so large that counting it would delay other requests.
 *
 * @throws ApiError invalid_data
 */
function requireCountable(rows: readonly CountedAggregation[], action: PolicyAction, nowMs: number): void {
  const { length } = action.units;
  const counting = rows.map(compiledOf).filter(({ method }) => method === action.method);
  if (length > MAX_COUNTED_UNITS && counting.length > 0) {
    const message = `expected at most ${MAX_COUNTED_UNITS} calls under a running total, got ${length}`;
    throw invalidField('/params', message);
  }
  const conditions = counting.flatMap(({ compared }) => compared);
  if (!exceedsWork(conditions, action.units, nowMs)) return;
  const message = `asks for more than ${MAX_COMPARISONS} comparisons under the running totals; send fewer calls at once`;
  throw invalidField('/params', message);
}

/** The maximum length, in characters, of a key that is stored unchanged. It fits into a PostgreSQL index entry. */
const MAX_STORED_KEY = 512;

/** Returns the stored form of a group key. Calldata values can have any length, but index entries are limited. */
function storedKey(groupKey: string): string {
  return groupKey.length > MAX_STORED_KEY ? `sha256:${hash('sha256', groupKey)}` : groupKey;
}

/** Returns an action's contributions to an aggregation: one for each unit that meets the aggregation's conditions. */
export function contributionsOf(
  row: Pick<CountedAggregation, 'id' | 'definition'>,
  action: PolicyAction,
  nowMs: number,
): readonly Contribution[] {
  // INVARIANT: conditions of aggregations never refer to totals or condition sets, because `compileAggregation`
  // refuses such conditions.
  const facts: PolicyFacts = { nowMs, inConditionSet: () => undefined, aggregation: () => undefined };
  return compiledOf(row).contributions(action, facts);
}

function compiledOf({ id, definition }: Pick<CountedAggregation, 'id' | 'definition'>): CompiledAggregation {
  const kept = compiled.get(id);
  if (kept?.text === definition) return kept.aggregation;
  const aggregation = compileAggregation(JSON.parse(definition) as AggregationDefinition);
  compiled.set(id, { text: definition, aggregation });
  return aggregation;
}

/** Returns the largest total among an action's groups. A batch must stay below the cap in each group. */
async function totalWith(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  row: { id: string; window_seconds: number },
  added: readonly Entry[],
  { hold, known }: Pick<ReadOptions, 'hold' | 'known'>,
): Promise<bigint | 'unreadable'> {
  const byGroup = new Map<string, bigint>();
  for (const { groupKey, amount } of added) {
    byGroup.set(groupKey, (byGroup.get(groupKey) ?? 0n) + (amount ?? 0n));
  }
  let largest = 0n;
  for (const groupKey of [...byGroup.keys()].sort()) {
    await hold(row.id, groupKey);
    const isKnown = known !== undefined && isSameGroup(known, { aggregationId: row.id, groupKey });
    const recorded = isKnown ? known.sum : await sumRecorded(context, row, groupKey);
    const total = recorded + (byGroup.get(groupKey) ?? 0n);
    if (total > largest) largest = total;
  }
  // INVARIANT: a contribution that cannot be counted never passes a cap. No condition holds on an unreadable total.
  return added.some(({ amount }) => amount === undefined) ? 'unreadable' : largest;
}

interface Recorded {
  readonly id: string;
  readonly groupKey: string;
  readonly afterMs: number;
}

const selectSum = prepareQuery<Recorded, { sum: string }>((database, { id, groupKey, afterMs }) =>
  database
    .selectFrom('aggregation_records')
    .where('aggregation_id', '=', id)
    .where('group_key', '=', groupKey)
    .where('recorded_at_ms', '>', afterMs)
    .select(exactSum(database, 'amount').as('sum')),
);

async function sumRecorded(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  { id, window_seconds: windowSeconds }: { id: string; window_seconds: number },
  groupKey: string,
): Promise<bigint> {
  const recorded = { id, groupKey, afterMs: nowMs - windowSeconds * MS_PER_SECOND };
  const { rows } = await selectSum(em, recorded);
  return BigInt(rows[0]?.sum ?? 0);
}

async function recordEntries(
  { em, ids, nowMs }: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  entries: readonly Entry[],
): Promise<void> {
  // CHOICE: a contribution that could not be decoded adds 0 to the recorded total, as documented. Only its own request
  // treats it as unreadable.
  const counted = sumsOf(entries).filter(({ sum }) => sum > 0n);
  const rows = counted.map(({ aggregationId, groupKey, sum }) => ({
    id: ids.cuid2(),
    aggregation_id: aggregationId,
    group_key: groupKey,
    amount: String(sum),
    recorded_at_ms: nowMs,
  }));
  if (rows.length === 1) await insertRecord(em, rows[0]!, { isDeferred: true });
  else if (rows.length > 1)
    await em.getKysely<Tables>().insertInto('aggregation_records').values(rows).execute();
}

/** Sums the amounts that a request adds, by group. */
function sumsOf(entries: readonly Entry[]): readonly GroupSum[] {
  const sums = new Map<string, GroupSum>();
  for (const { aggregationId, groupKey, amount = 0n } of entries) {
    const key = `${aggregationId} ${groupKey}`;
    sums.set(key, { aggregationId, groupKey, sum: (sums.get(key)?.sum ?? 0n) + amount });
  }
  return [...sums.values()];
}

const insertRecord = prepareQuery<Selectable<Tables['aggregation_records']>>((database, record) =>
  database.insertInto('aggregation_records').values({
    id: record.id,
    aggregation_id: record.aggregation_id,
    group_key: record.group_key,
    amount: record.amount,
    recorded_at_ms: record.recorded_at_ms,
  }),
);
