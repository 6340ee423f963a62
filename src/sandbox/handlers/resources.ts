import { raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  AggregationEntity,
  type StoredAggregation,
} from '../../domain/access/aggregations/aggregation.entity.ts';
import { KeyQuorumEntity } from '../../domain/access/key-quorums/key-quorum.entity.ts';
import { readPolicy } from '../../domain/access/policies/find-policy.ts';
import { PolicyEntity } from '../../domain/access/policies/policy.entity.ts';
import { listEvery } from '../../domain/list-every.ts';
import { worthOf, worthText } from '../../domain/wallets/balances/balances.ts';
import { WalletEntity } from '../../domain/wallets/wallets/wallet.entity.ts';
import { add, fromRaw, readDecimal, ZERO } from '../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import type { ControlContext, Handler } from '../control-plane.ts';
import type { SandboxAggregation, SandboxAggregationLimit, SandboxPolicy } from '../generated/schemas.ts';
import { named, ownersOf, policyNames, walletNames } from '../names.ts';

export const listSandboxWallets: Handler<'listSandboxWallets'> = async ({ query }, context) => {
  const { search } = query;
  const { page, nextCursor, owners, policies } = await context.read(async (em) => {
    const where = {
      ...ofApp(query.app_id),
      ...(search === undefined ? {} : containing(search)),
    };
    const found = await listEvery(em, WalletEntity, query, { where });
    const owners = await ownersOf(
      em,
      found.page.flatMap(({ ownerId }) => ownerId ?? []),
      context.keyNames,
    );
    const policies = await policyNames(
      em,
      found.page.flatMap(({ policyId }) => policyId ?? []),
    );
    return { ...found, owners, policies };
  });
  const worths = await worthsOf(
    page.map(({ address }) => address),
    context,
  );
  return {
    data: page.map((wallet) => ({
      id: wallet.id,
      app_id: wallet.appId,
      name: wallet.displayName,
      external_id: wallet.externalId,
      chain_type: wallet.chainType,
      address: wallet.address,
      created_at_ms: wallet.createdAtMs,
      archived_at_ms: wallet.archivedAtMs,
      owner: (wallet.ownerId === null ? undefined : owners.get(wallet.ownerId)) ?? null,
      policies: wallet.policyId === null ? [] : [named(wallet.policyId, policies)],
      worth_usd: hasPrices(wallet.chainType) ? (worths.get(wallet.address) ?? '0') : null,
    })),
    next_cursor: nextCursor,
  };
};

export const listSandboxKeyQuorums: Handler<'listSandboxKeyQuorums'> = async ({ query }, context) =>
  context.read(async (em) => {
    const { page, nextCursor } = await listEvery(em, KeyQuorumEntity, query, { where: ofApp(query.app_id) });
    const ids = page.map(({ id }) => id);
    const owners = await ownersOf(em, ids, context.keyNames);
    const wallets = await walletsOf(em, 'owner_id', ids);
    return {
      data: page.map(({ id, appId }) => {
        const { key_quorum_id: _, ...quorum } = owners.get(id)!;
        return { id, app_id: appId, ...quorum, ...(wallets.get(id) ?? noWallets) };
      }),
      next_cursor: nextCursor,
    };
  });

export const listSandboxPolicies: Handler<'listSandboxPolicies'> = async ({ query }, context) =>
  context.read(async (em) => {
    const { page, nextCursor } = await listEvery(em, PolicyEntity, query, { where: ofApp(query.app_id) });
    const wallets = await walletsOf(
      em,
      'policy_id',
      page.map(({ id }) => id),
    );
    return {
      data: page.map((document) => {
        const { id, rules, ownerId, ...policy } = readPolicy(document);
        return {
          ...{ id, app_id: document.appId, name: policy.name, chain_type: policy.chainType, version: '1.0' },
          rules: rules.map(({ id, name, method, action }) => ({ id, name, method, action })),
          owner_id: ownerId,
          ...(wallets.get(id) ?? noWallets),
        };
      }),
      next_cursor: nextCursor,
    };
  });

export const listSandboxAggregations: Handler<'listSandboxAggregations'> = async ({ query }, context) =>
  context.read(async (em) => {
    const { page, nextCursor } = await listEvery(em, AggregationEntity, query, {
      where: ofApp(query.app_id),
    });
    const owners = await ownersOf(
      em,
      page.flatMap(({ ownerId }) => ownerId ?? []),
      context.keyNames,
    );
    const sums = await sumsOf(em, page, context.clock.now());
    const limits = await limitsOf(em, page);
    return {
      data: page.map(({ id, appId, name, definition, windowSeconds, ownerId, createdAtMs }) => ({
        ...{ id, app_id: appId, name, method: definition.method, metric: { ...definition.metric } },
        conditions: (definition.conditions ?? []).map((condition) => ({ ...condition })),
        group_by: (definition.group_by ?? []).map((group) => ({ ...group })),
        ...{ window_seconds: windowSeconds, created_at_ms: createdAtMs },
        owner: (ownerId === null ? undefined : owners.get(ownerId)) ?? null,
        ...(sums.get(id) ?? noSums),
        limits: [...(limits.get(id) ?? [])],
      })),
      next_cursor: nextCursor,
    };
  });

/** The largest sums of an aggregation, and how many sums it has. */
type SumsOf = Pick<SandboxAggregation, 'sums' | 'sum_count'>;

const noSums: SumsOf = { sums: [], sum_count: 0 };

const MAX_SUMS = 20;

/** Returns the sums of aggregations in the windows that end now, by the id of the aggregation. */
async function sumsOf(
  em: SqlEntityManager,
  aggregations: readonly Pick<StoredAggregation, 'id'>[],
  nowMs: number,
): Promise<ReadonlyMap<string, SumsOf>> {
  // Sums are integers without leading zeros, stored as text. Ordering by length and then by text orders them by value.
  const rows = await em.execute<
    { id: string; group_key: string; sum: string; requests: number; total: number }[]
  >(
    `select id, group_key, sum, requests, total from (
       select id, group_key, sum, requests, count(*) over (partition by id) as total,
         row_number() over (partition by id order by length(sum) desc, sum desc, group_key) as place
       from (
         select aggregations.id as id, group_key, exact_sum(amount) as sum, count(*) as requests
         from aggregations join aggregation_records on aggregation_id = aggregations.id
           and recorded_at_ms > ? - window_seconds * 1000
         where aggregations.id in (select value from json_each(?))
         group by aggregations.id, group_key
       )
     ) where place <= ${MAX_SUMS} order by id, place`,
    [nowMs, JSON.stringify(aggregations.map(({ id }) => id))],
  );
  const wallets = await walletNames(
    em,
    rows.map(({ group_key: key }) => walletOf(key)),
  );
  return new Map(
    [...Map.groupBy(rows, ({ id }) => id)].map(([id, own]) => [
      id,
      {
        sums: own.map(({ group_key: key, sum, requests }) => ({
          wallet: named(walletOf(key), wallets),
          group: groupOf(key),
          sum,
          request_count: requests,
        })),
        sum_count: own[0]!.total,
      },
    ]),
  );
}

/** Returns the wallet of a group's key: the wallet's id, a colon, and the values of the group. */
function walletOf(groupKey: string): string {
  return groupKey.slice(0, groupKey.indexOf(':'));
}

/** Returns the values of a group from its key, or null if the key contains only their digest. */
function groupOf(groupKey: string): string[][] | null {
  const stored = groupKey.slice(groupKey.indexOf(':') + 1);
  if (!stored.startsWith('[')) return null;
  return (JSON.parse(stored) as (string[] | null)[]).map((values) => values ?? []);
}

const MAX_LIMITING_POLICIES = 100;
const MAX_LIMITS = 100;

/** Returns the conditions of policies of the same app that compare the aggregations, by the aggregation's id. */
async function limitsOf(
  em: SqlEntityManager,
  aggregations: readonly Pick<StoredAggregation, 'id' | 'appId'>[],
): Promise<ReadonlyMap<string, readonly SandboxAggregationLimit[]>> {
  if (aggregations.length === 0) return new Map();
  const mentions = 'exists (select 1 from json_each(?) where instr(rules, value) > 0)';
  const ids = JSON.stringify(aggregations.map(({ id }) => `"aggregation.${id}"`));
  const policies = await em.find(
    PolicyEntity,
    { [raw(mentions, [ids])]: [] },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LIMITING_POLICIES, disableIdentityMap: true },
  );
  const limits = new Map<string, SandboxAggregationLimit[]>();
  for (const document of policies) {
    for (const { name, action, conditions } of readPolicy(document).rules) {
      for (const { field, operator, value } of conditions) {
        const id = aggregations.find(
          (each) => each.appId === document.appId && field === `aggregation.${each.id}`,
        )?.id;
        const own = limits.get(id ?? '') ?? [];
        if (id === undefined || own.length === MAX_LIMITS) continue;
        const policy = { id: document.id, name: document.name };
        limits.set(id, [...own, { policy, rule_name: name, action, operator, values: [value].flat() }]);
      }
    }
  }
  return limits;
}

const ofApp = (appId: string | undefined): object => (appId === undefined ? {} : { appId });

/** The newest wallets of a policy or a key quorum, and how many wallets it has. */
type WalletsOf = Pick<SandboxPolicy, 'wallets' | 'wallet_count'>;

const noWallets: WalletsOf = { wallets: [], wallet_count: 0 };

const MAX_WALLETS = 10;

/** Returns the wallets of each owner or policy, by its id. The ids are passed as one parameter, a JSON array. */
async function walletsOf(
  em: SqlEntityManager,
  column: 'owner_id' | 'policy_id',
  ids: readonly string[],
): Promise<ReadonlyMap<string, WalletsOf>> {
  const rows = await em.execute<{ holder: string; id: string; name: string | null; total: number }[]>(
    `select holder, id, name, total from (
       select ${column} as holder, id, display_name as name, count(*) over (partition by ${column}) as total,
         row_number() over (partition by ${column} order by created_at_ms desc, id desc) as place
       from wallets where ${column} in (select value from json_each(?))
     ) where place <= ${MAX_WALLETS} order by holder, place`,
    [JSON.stringify(ids)],
  );
  return new Map(
    [...Map.groupBy(rows, ({ holder }) => holder)].map(([holder, own]) => [
      holder,
      { wallets: own.map(({ id, name }) => ({ id, name })), wallet_count: own[0]!.total },
    ]),
  );
}

/**
 * Returns a condition for wallets whose name, external id, address or id contains `text`. Ignores case for ASCII
 * letters.
 */
function containing(text: string): object {
  const folded = text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const texts = `lower(coalesce(display_name, '') || char(10) || coalesce(external_id, '') || char(10) || address || char(10) || id)`;
  return { [raw(`instr(${texts}, ?) > 0`, [folded])]: [] };
}

/** Returns whether the assets of a chain type have a price. */
function hasPrices(chainType: string): boolean {
  return pricedChainTypes.has(chainType);
}

const pricedChainTypes = new Set(['ethereum', 'solana', 'tron']);

/**
 * Returns the value in US dollars of the balances of addresses on simulated chains, by address.
 *
 * CHOICE: assets without a price and assets of test networks count as zero.
 */
async function worthsOf(
  addresses: readonly string[],
  { chains, prices }: Pick<ControlContext, 'chains' | 'prices'>,
): Promise<ReadonlyMap<string, string>> {
  const holdings = await chains.holdings(addresses);
  const usd = await prices.all();
  const sums = new Map(addresses.map((address) => [address, ZERO]));
  for (const { caip2, address, rawAmount, decimals, pricedAs } of holdings) {
    if (chainOfCaip2(caip2)?.isTestnet !== false) continue;
    const price = readDecimal(usd.get(pricedAs) ?? '') ?? ZERO;
    sums.set(address, add(sums.get(address) ?? ZERO, worthOf(fromRaw(rawAmount, decimals), price)));
  }
  return new Map([...sums].map(([address, worth]) => [address, worthText(worth)]));
}
