import type { SqlEntityManager } from '@mikro-orm/sql';
import { encodeFunctionData, keccak256, parseAbi, toBytes, toHex } from 'viem';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  createAggregation,
  deleteAggregation,
  findAggregation,
} from '../../src/domain/access/aggregations/aggregation.ts';
import { openRunningTotals } from '../../src/domain/access/aggregations/aggregation-totals.ts';
import {
  addConditionSetItems,
  createConditionSet,
  deleteConditionSet,
  deleteConditionSetItem,
  listConditionSetItems,
  replaceConditionSetItems,
} from '../../src/domain/access/condition-sets/condition-set.ts';
import { decide, evaluatePolicies } from '../../src/domain/access/policies/enforce-policies.ts';
import { findPolicy } from '../../src/domain/access/policies/find-policy.ts';
import {
  createPolicy,
  createPolicyRule,
  deletePolicy,
  deletePolicyRule,
  updatePolicy,
  updatePolicyRule,
} from '../../src/domain/access/policies/policy.ts';
import { applicablePolicies } from '../../src/domain/wallets/wallet-uses/use-wallet.ts';
import { createWallet } from '../../src/domain/wallets/wallets/create-wallet.ts';
import { findWallet } from '../../src/domain/wallets/wallets/find-wallet.ts';
import { updateWallet } from '../../src/domain/wallets/wallets/update-wallet.ts';
import { compilePolicy } from '../../src/engine/policy/compile.ts';
import type { CreateAggregationRequest, CreatePolicyRequest } from '../../src/generated/schemas.ts';
import { resetDatabase } from '../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { contextOf, inTransaction, startMs } from './contexts.ts';

type Rule = CreatePolicyRequest['rules'][number];

const ruleFor = (word: string): Rule => ({
  name: word,
  method: 'personal_sign',
  action: 'ALLOW',
  conditions: [{ field_source: 'message', field: 'content', operator: 'eq', value: word }],
});
const policyOf = (words: readonly string[]): CreatePolicyRequest => ({
  version: '1.0',
  name: 'Words',
  chain_type: 'ethereum',
  rules: words.map(ruleFor),
});
const daily: CreateAggregationRequest = {
  name: 'Ether sent in a day',
  method: 'eth_signTransaction',
  metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
  window: { type: 'rolling', seconds: 86_400 },
};
const asItems = (values: readonly string[]) => values.map((value) => ({ value }));

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const reading = (appId = 'acme') => contextOf(database.orm.em.fork() as SqlEntityManager, appId);
  const writing = <T>(work: Parameters<typeof inTransaction<T>>[1], nowMs = startMs) =>
    inTransaction(database, work, { nowMs });
  const makeSet = async (values: readonly string[] = []) => {
    const { id } = await writing((context) => createConditionSet(context, { name: 'a set' }));
    if (values.length > 0) await writing((context) => addConditionSetItems(context, id, asItems(values)));
    return id;
  };
  const valuesOf = async (id: string, query?: string) =>
    (await listConditionSetItems(reading(), id, { query })).items.map(({ value }) => value).sort();

  test('a policy is stored with its rules in order, changed and deleted', async () => {
    const made = await writing((context) => createPolicy(context, policyOf(['one', 'two'])));
    expect(await findPolicy(reading(), made.id)).toEqual(made);
    const third = await writing((context) => createPolicyRule(context, made.id, ruleFor('three')));
    const second = await writing((context) =>
      updatePolicyRule(context, made.id, made.rules[1]!.id, ruleFor('zwei')),
    );
    await writing((context) => deletePolicyRule(context, made.id, made.rules[0]!.id));
    const after = await findPolicy(reading(), made.id);
    expect(after).toEqual({ ...made, rules: [second, third], revision: made.revision + 3 });

    const replaced = await writing((context) => updatePolicy(context, made.id, { rules: [ruleFor('zwei')] }));
    expect(replaced.rules[0]!.id).not.toBe(second.id);
    expect(await findPolicy(reading(), made.id)).toEqual(replaced);
    await writing((context) => deletePolicy(context, made.id));
    await expect(findPolicy(reading(), made.id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('concurrently added rules are all stored', async () => {
    const { id } = await writing((context) => createPolicy(context, policyOf([])));
    const words = Array.from({ length: 10 }, (_, index) => `w${index}`);
    await Promise.all(
      words.map((word) => writing((context) => createPolicyRule(context, id, ruleFor(word)))),
    );
    const { rules, revision } = await findPolicy(reading(), id);
    expect(rules.map(({ name }) => name).sort()).toEqual(words);
    expect(revision).toBe(10);
  });

  test('a wallet is evaluated under its current policy in its current form', async () => {
    const [first, second] = [
      await writing((context) => createPolicy(context, policyOf(['one']))),
      await writing((context) => createPolicy(context, policyOf(['other']))),
    ];
    const { id } = await writing((context) =>
      createWallet(context, { chain_type: 'ethereum', policy_ids: [first.id], external_id: 'till-7' }),
    );
    const totals = { totalOf: () => undefined };
    const words = ['one', 'two', 'other'];
    /** The texts that the policy allows: by wallet id, by external id, and by a signer with the first policy. */
    const allowed = async () => {
      const wallets = [await findWallet(reading(), id), await findWallet(reading(), 'ext_wal_till-7')];
      const asked = [
        ...wallets.map((wallet) => applicablePolicies(wallet, { kind: 'owner' })),
        applicablePolicies(wallets[0]!, {
          kind: 'signer',
          signerId: 'signer',
          overridePolicyIds: [first.id],
        }),
      ];
      return Promise.all(
        asked.map(async (policies) => {
          const judged = words.map(async (word) => {
            const units = [{ label: 'message', messageBytes: Buffer.from(word) }];
            const { denial } = await evaluatePolicies(
              reading(),
              policies,
              { method: 'personal_sign', units },
              totals,
            );
            return denial === undefined ? [word] : [];
          });
          return (await Promise.all(judged)).flat();
        }),
      );
    };
    expect(await allowed()).toEqual([['one'], ['one'], ['one']]);
    await writing((context) => updatePolicy(context, first.id, { rules: [ruleFor('two')] }));
    expect(await allowed()).toEqual([['two'], ['two'], ['two']]);
    const { id: ruleId } = await writing((context) => createPolicyRule(context, first.id, ruleFor('one')));
    expect(await allowed()).toEqual(Array(3).fill(['one', 'two']));
    await writing((context) => deletePolicyRule(context, first.id, ruleId));
    await writing((context) => updateWallet(context, id, { policy_ids: [second.id] }));
    expect(await allowed()).toEqual([['other'], ['other'], ['two']]);
    await writing((context) => updateWallet(context, id, { policy_ids: [] }));
    expect(await allowed()).toEqual([words, words, ['two']]);
  });

  test('a policy is never deleted while a wallet that uses it is created', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await writing((context) => createPolicy(context, policyOf([])));
      const [wallet, deletion] = await Promise.allSettled([
        writing((context) => createWallet(context, { chain_type: 'ethereum', policy_ids: [id] })),
        writing((context) => deletePolicy(context, id)),
      ]);
      expect([wallet.status, deletion.status].sort()).toEqual(['fulfilled', 'rejected']);
      const refused = wallet.status === 'rejected' ? wallet : deletion;
      expect(refused).toMatchObject({
        reason: { code: wallet.status === 'rejected' ? 'invalid_data' : 'invalid_state' },
      });
    }
  });

  test('values are added once, found by any substring and replaced', async () => {
    const id = await makeSet(['100%', '100', 'a_b', 'aXb', 'C:\\temp', 'Zürich', "it's"]);
    await writing((context) => addConditionSetItems(context, id, asItems(['100', 'a_b', 'new', 'new'])));
    expect(await valuesOf(id)).toEqual(
      ['100', '100%', 'C:\\temp', 'Zürich', 'aXb', 'a_b', "it's", 'new'].sort(),
    );
    expect(await valuesOf(id, '%')).toEqual(['100%']);
    expect(await valuesOf(id, '_')).toEqual(['a_b']);
    expect(await valuesOf(id, 'A_B')).toEqual(['a_b']);
    expect(await valuesOf(id, '\\')).toEqual(['C:\\temp']);
    expect(await valuesOf(id, 'ZÜR')).toEqual(['Zürich']);
    expect(await valuesOf(id, "'")).toEqual(["it's"]);
    await writing((context) => replaceConditionSetItems(context, id, asItems(['only'])));
    expect(await valuesOf(id)).toEqual(['only']);
    await writing((context) => deleteConditionSet(context, id));
    await expect(listConditionSetItems(reading(), id, {})).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a value that is added concurrently is one item', async () => {
    const id = await makeSet();
    const added = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        writing((context) => addConditionSetItems(context, id, asItems(['same', `own${index}`]))),
      ),
    );
    expect(new Set(added.map(([same]) => same!.id)).size).toBe(1);
    expect(await valuesOf(id)).toHaveLength(9);
  });

  test('every value that the contract accepts can be stored, listed and found', async () => {
    // The longest possible value, with characters that cannot be compressed in an index entry.
    const long = Array.from({ length: 512 }, (_, index) =>
      String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000)),
    );
    const emoji = Array.from({ length: 512 }, (_, index) =>
      String.fromCodePoint(0x1f300 + ((index * 131) % 700)),
    );
    const values = [
      long.join(''),
      emoji.join(''),
      `${long.slice(1).join('')}x`,
      'İstanbul',
      '\u0001',
      ' ',
      '\n',
    ];
    const id = await makeSet();
    const items = await writing((context) => addConditionSetItems(context, id, asItems(values)));
    expect(items.map(({ value }) => value)).toEqual(values);
    const again = await writing((context) => addConditionSetItems(context, id, asItems(values)), startMs + 1);
    expect(again).toEqual(items);
    expect(await valuesOf(id)).toEqual([...values].sort());
    expect(await valuesOf(id, long.slice(5, 20).join(''))).toHaveLength(2);
  });

  test('paging returns every item once, even with equal times', async () => {
    const id = await makeSet(Array.from({ length: 23 }, (_, index) => `v${index}`));
    const late = asItems(Array.from({ length: 20 }, (_, index) => `late${index}`));
    await writing((context) => addConditionSetItems(context, id, late), startMs + 1);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listConditionSetItems(reading(), id, { limit: 5, cursor });
      seen.push(...page.items.map(({ value }) => value));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && seen.length < 100);
    expect(seen).toHaveLength(43);
    expect(new Set(seen).size).toBe(43);
    expect(seen.slice(0, 20).every((value) => value.startsWith('late'))).toBe(true);
  });

  test('a value is looked up with the case rule of its kind', async () => {
    const id = await makeSet(['0xABCdef0000000000000000000000000000000001', 'Hello', '0x64', '7']);
    const decides = async (policy: object, action: object) => {
      const compiled = compilePolicy({ id: 'policy', chain_type: 'ethereum', rules: [policy as never] });
      const totals = { totalOf: () => undefined, record: async () => undefined };
      return (await decide(reading(), compiled, action as never, totals)).allowed;
    };
    const rule = (method: string, field_source: string, field: string) => ({
      id: 'rule',
      name: 'rule',
      action: 'ALLOW',
      method,
      conditions: [{ field_source, field, operator: 'in_condition_set', value: id }],
    });
    const call = (part: object) => ({
      method: 'eth_signTransaction',
      units: [
        {
          label: 'call',
          ethereumCall: { to: undefined, value: 1n, chainId: 1n, data: new Uint8Array(), ...part },
        },
      ],
    });
    const message = (text: string) => ({
      method: 'personal_sign',
      units: [{ label: 'message', messageBytes: Buffer.from(text) }],
    });
    const to = rule('eth_signTransaction', 'ethereum_transaction', 'to');
    const value = rule('eth_signTransaction', 'ethereum_transaction', 'value');
    const content = rule('personal_sign', 'message', 'content');
    expect(await decides(to, call({ to: '0xabcDEF0000000000000000000000000000000001' }))).toBe(true);
    expect(await decides(to, call({ to: '0xabcDEF0000000000000000000000000000000002' }))).toBe(false);
    expect(await decides(value, call({ value: 100n }))).toBe(true);
    expect(await decides(value, call({ value: 7n }))).toBe(true);
    expect(await decides(value, call({ value: 64n }))).toBe(false);
    expect(await decides(content, message('Hello'))).toBe(true);
    expect(await decides(content, message('hello'))).toBe(false);
    const items = (await listConditionSetItems(reading(), id, { query: 'hello' })).items;
    await writing((context) => deleteConditionSetItem(context, id, items[0]!.id));
    expect(await decides(content, message('Hello'))).toBe(false);
  });

  test('an aggregation is stored as it was given, and deleted', async () => {
    const { name, ...terms } = { ...daily, conditions: [], group_by: [] };
    const made = await writing((context) => createAggregation(context, { name, ...terms }));
    expect(await findAggregation(reading(), made.id)).toEqual({
      id: made.id,
      appId: 'acme',
      name,
      definition: terms,
      windowSeconds: terms.window.seconds,
      ownerId: null,
      createdAtMs: startMs,
    });
    await expect(findAggregation(reading('other'), made.id)).rejects.toMatchObject({ code: 'not_found' });
    await writing((context) => deleteAggregation(context, made.id));
    await expect(findAggregation(reading(), made.id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a group key can be as long as a request allows', async () => {
    const abi = parseAbi(['function note(string text, uint256 amount)']);
    const field_source = 'ethereum_calldata' as const;
    const { id } = await writing((context) =>
      createAggregation(context, {
        ...daily,
        metric: { field_source, field: 'note.amount', function: 'sum', abi },
        group_by: [{ field_source, field: 'note.text', abi }],
      } as unknown as CreateAggregationRequest),
    );
    // All parts differ, so that the database cannot compress it.
    const text = (first: number) =>
      Array.from({ length: 4000 }, (_, index) => keccak256(toHex(first + index)).slice(2)).join('');
    const add = (note: string) =>
      writing(async (context) => {
        const data = toBytes(encodeFunctionData({ abi, args: [note, 5n] }));
        const units = [{ label: 'call', ethereumCall: { to: undefined, value: 0n, chainId: 1n, data } }];
        const totals = await openRunningTotals(context, 'wallet', { method: 'eth_signTransaction', units });
        await totals.record();
        return totals.totalOf(id);
      });
    expect([await add(text(0)), await add(text(1)), await add(text(0)), await add('')]).toEqual([
      5n,
      5n,
      10n,
      5n,
    ]);
  });

  test('of many concurrently created aggregations ten are stored', async () => {
    const tries = Array.from({ length: 16 }, () => writing((context) => createAggregation(context, daily)));
    const results = await Promise.allSettled(tries);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    for (const result of results) {
      if (result.status === 'rejected')
        expect(result.reason).toMatchObject({ code: 'invalid_aggregation_format' });
    }
  });
});
