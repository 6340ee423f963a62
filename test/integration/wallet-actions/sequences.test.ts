import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { planCalls } from '../../../src/domain/money/sending/plan-calls.ts';
import { beginWalletAction, sendSteps } from '../../../src/domain/money/wallet-actions/wallet-action.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { findWallet } from '../../../src/domain/wallets/wallets/find-wallet.ts';
import type { TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { caip2, type ScriptedChain, scriptChain } from '../../support/scripted-chain.ts';
import { withoutOwner } from '../../support/unsigned-proof.ts';
import { finish, follow, readMoved } from './run-jobs.ts';

// What the engine does with several transactions of one action, whatever its type.
const token = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const [first, second] = [
  '0x00000000000000000000000000000000000000a1',
  '0x00000000000000000000000000000000000000a2',
];

describe.each(databaseKinds)('actions of several transactions on %s', (kind) => {
  let chain: ScriptedChain;
  let operations: TestOperations;
  let wallet: Wallet;
  beforeEach(async () => {
    chain = scriptChain();
    operations = await openOperations(kind, { chains: chain });
    const made = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    wallet = made.body as Wallet;
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  /** Starts an action that calls two contracts in order, and runs what comes after the commit. */
  async function start({ readsEffects = false } = {}): Promise<string> {
    const fork = operations.database.orm.em.fork() as SqlEntityManager;
    const planned = await planCalls(operations.context(fork), {
      ...{ caip2, address: wallet.address, method: 'transfer' },
      calls: [first, second].map((to) => ({ to, value: 0n, data: Uint8Array.of(1) })),
    });
    const { context, id } = await fork.transactional(async (em) => {
      const context = operations.context(em as SqlEntityManager) as ReturnType<TestOperations['context']> & {
        finish(): Promise<void>;
      };
      const found = await findWallet(context, wallet.id);
      const steps = await sendSteps(context, found, {
        ...{ type: 'transfer', builds: planned.builds, readsEffects },
        authorization: withoutOwner,
      });
      const details = { source_amount: '1', source_chain: 'base', destination_address: first };
      const action = { type: 'transfer', nonce: undefined, referenceId: undefined, details, steps } as const;
      return { context, id: (await beginWalletAction(context, wallet.id, action)).id };
    });
    await context.finish();
    return id;
  }

  async function actionOf(id: string): Promise<{ status: string; steps: object[] }> {
    const fork = operations.database.orm.em.fork() as SqlEntityManager;
    const { status } = await fork
      .getKysely<Tables>()
      .selectFrom('wallet_actions')
      .select('status')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const { body } = await operations.run('getWalletAction', {
      path: { wallet_id: wallet.id, action_id: id },
      query: { include: 'steps' },
    });
    return { status, steps: (body as TransferActionResponse).steps ?? [] };
  }

  async function eventsOf(id: string): Promise<string[]> {
    const fork = operations.database.orm.em.fork() as SqlEntityManager;
    const rows = await fork
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select(['type', 'payload'])
      .where('type', 'like', 'wallet_action.%')
      .execute();
    return rows.filter(({ payload }) => payload.includes(id)).map(({ type }) => type);
  }

  async function wait(seconds: number): Promise<void> {
    operations.clock.nowMs += seconds * 1000;
    await follow(operations);
  }

  const sentTo = () => chain.broadcasts.map(({ transaction, nonce }) => [transaction.to, nonce]);
  const inOrder = [
    [first, 0],
    [second, 1],
  ];

  test('are signed with consecutive nonces and broadcast in order', async () => {
    const id = await start();
    expect(sentTo()).toEqual(inOrder);
    for (const { hash } of chain.broadcasts) chain.include(hash);
    await wait(2);
    await finish(operations);
    expect((await actionOf(id)).status).toBe('succeeded');
    expect(await eventsOf(id)).toEqual([
      'wallet_action.transfer.created',
      'wallet_action.transfer.succeeded',
    ]);
  });

  test('when the chain refuses the first one, the second is never sent and the action is rejected', async () => {
    chain.refusals.push({ isAccepted: false, reason: 'insufficient_funds', message: 'insufficient funds' });
    const id = await start();
    expect(sentTo()).toEqual([inOrder[0]]);
    await finish(operations);
    const { status, steps } = await actionOf(id);
    expect({ status, steps }).toMatchObject({
      status: 'rejected',
      steps: [{ status: 'rejected' }, { status: 'rejected' }],
    });
    // Their nonces are free again.
    await start();
    expect(sentTo().slice(1)).toEqual(inOrder);
  });

  test('when the chain cannot be reached, the job sends them later, the second only after the first', async () => {
    const before = await start();
    chain.broadcasts.length = 0;
    chain.duringBroadcast = () => Promise.reject(new Error('connect ECONNREFUSED'));
    const id = await start();
    expect(sentTo()).toEqual([]);
    await wait(20);
    expect(sentTo()).toEqual([]);
    chain.duringBroadcast = async () => undefined;
    for (let round = 0; round < 4; round += 1) await wait(20);
    expect(sentTo()).toEqual([
      [first, 2],
      [second, 3],
    ]);
    expect([(await actionOf(before)).status, (await actionOf(id)).status]).toEqual(['pending', 'pending']);
  });

  test('when the first one is refused after a crash, the job ends the second unsent', async () => {
    chain.duringBroadcast = () => Promise.reject(new Error('the server dies'));
    const id = await start();
    chain.duringBroadcast = async () => undefined;
    chain.refusals.push({ isAccepted: false, reason: 'invalid', message: 'no' });
    for (let round = 0; round < 4; round += 1) await wait(20);
    await finish(operations);
    expect(sentTo()).toEqual([inOrder[0]]);
    expect((await actionOf(id)).status).toBe('rejected');
  });

  test('an action after one of which only the first transaction was sent is sent after its second one', async () => {
    const ids = [await startHalf(), await start()];
    expect(sentTo()).toEqual([inOrder[0]]);
    await wait(20);
    expect(sentTo()).toEqual([...inOrder, [first, 2], [second, 3]]);
    for (const { hash } of chain.broadcasts) chain.include(hash);
    await wait(60);
    await finish(operations);
    expect((await Promise.all(ids.map(actionOf))).map(({ status }) => status)).toEqual([
      'succeeded',
      'succeeded',
    ]);
  });

  test('an action ends unsent with the one before it, whose first transaction was replaced', async () => {
    const ids = [await startHalf(), await start()];
    chain.setStatus(chain.broadcasts[0]!.hash, { kind: 'replaced', byHash: '0xab' });
    await wait(20);
    await finish(operations);
    expect(sentTo()).toEqual([inOrder[0]]);
    const states = (await Promise.all(ids.map(actionOf))).map(({ status }) => status);
    expect(states).not.toContain('pending');
    expect(await eventsOf(ids[1]!)).toEqual([
      'wallet_action.transfer.created',
      `wallet_action.transfer.${states[1]}`,
    ]);
    // The next one leaves no nonce out.
    await start();
    expect(sentTo().slice(1)).toEqual([
      [first, 1],
      [second, 2],
    ]);
  });

  /** An action of which the chain has got the first transaction only. */
  async function startHalf(): Promise<string> {
    let left = 1;
    chain.duringBroadcast = async () => {
      left -= 1;
      if (left < 0) throw new Error('socket hang up');
    };
    const id = await start();
    chain.duringBroadcast = async () => undefined;
    return id;
  }

  test('an action ends once the effects in the block of its transactions are read', async () => {
    const id = await start({ readsEffects: true });
    const read: string[] = [];
    let blockNumber = 6n;
    const from = wallet.address;
    chain.movementsOf = async (hash) => {
      read.push(hash);
      return { blockNumber, movements: [{ token, from, to: first, rawAmount: 5n }] };
    };
    for (const { hash } of chain.broadcasts) chain.include(hash);
    await wait(2);
    await finish(operations);
    expect((await actionOf(id)).status).toBe('pending');
    // Another node has not seen the reorganization that moved them to block 7.
    await readMoved(operations);
    await finish(operations);
    expect((await actionOf(id)).status).toBe('pending');
    blockNumber = 7n;
    await wait(61);
    await readMoved(operations);
    await finish(operations);
    expect((await actionOf(id)).status).toBe('succeeded');
    expect(new Set(read)).toEqual(new Set(chain.broadcasts.map(({ hash }) => hash)));
    const asked = read.length;
    await wait(600);
    await readMoved(operations);
    expect(read.length).toBe(asked);
  });

  test('many actions of which only some steps have ended do not keep another one from ending', async () => {
    for (let count = 0; count < 51; count += 1) {
      await start();
      chain.include(chain.broadcasts.at(-2)!.hash);
    }
    const id = await start();
    for (const { hash } of chain.broadcasts.slice(-2)) chain.include(hash);
    for (let round = 0; round < 3; round += 1) await wait(61);
    await finish(operations);
    expect((await actionOf(id)).status).toBe('succeeded');
  });
});
