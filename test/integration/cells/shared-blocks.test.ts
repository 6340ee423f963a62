import { setTimeout as pause } from 'node:timers/promises';
import { encodeEventTopics, erc20Abi, keccak256, toHex } from 'viem';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { makeNodeChain, type NodeChain, startNodeOf } from '../../support/nodes/node-chain.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import type { ScriptedNode } from '../../support/scripted-node.ts';

/*
 * Two cells, each with a database of its own, over the chains of one process: what they read of a chain is requested
 * once, and each of them reports the deposits of its own wallets.
 */

const caip2 = 'eip155:1';
const sender = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
/** Longer than a head is used. */
const NEXT_ROUND_MS = 950;

interface TestCell {
  readonly operations: TestOperations;
  readonly wallet: Wallet;
  readonly job: ReturnType<typeof followDeposits>;
}

let chain: NodeChain;
let node: ScriptedNode;
let cells: TestCell[];
const errors: string[] = [];

beforeEach(async () => {
  chain = makeNodeChain(caip2, 5);
  node = await startNodeOf(chain);
  errors.length = 0;
  const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) };
  const chains = connectChains([{ caip2, urls: [node.url], confirmations: 1 }], log, { cells: 2 });
  cells = [];
  const makeWallet = async (operations: TestOperations): Promise<Wallet> =>
    (await operations.run('createWallet', { body: { chain_type: 'ethereum' } })).body as Wallet;
  for (const cell of ['eu', 'us']) {
    const operations = await openOperations('sqlite', { chains });
    let wallet = await makeWallet(operations);
    // Keys are seeded, so the first wallets of both cells have the same address.
    if (cell === 'us') {
      await operations.run('archiveWallet', { path: { wallet_id: wallet.id } });
      wallet = await makeWallet(operations);
    }
    const { services, database } = operations;
    cells.push({
      operations,
      wallet,
      job: followDeposits({ services, inUnit: inUnitOf(unitsOf(database)) }),
    });
  }
  await readAll(...cells);
});
afterEach(async () => {
  for (const { operations } of cells) await operations[Symbol.asyncDispose]();
  await node[Symbol.asyncDispose]();
});

/** Lets the cells read at the same time until none finds more. */
async function readAll(...reading: readonly TestCell[]): Promise<void> {
  await Promise.all(
    reading.map(async ({ job }) => {
      while (await job.run(() => undefined));
    }),
  );
}

async function amountsOf({ operations }: TestCell): Promise<number[]> {
  const rows = await operations.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select('payload')
    .where('type', '=', 'wallet.funds_deposited')
    .orderBy('sequence')
    .execute();
  return rows.map(({ payload }) => Number((JSON.parse(payload) as { amount: string }).amount));
}

/** A block with a transfer to the wallet of each cell. */
function blockWith(amounts: readonly number[]) {
  return {
    logs: amounts.map((amount, at) => ({
      address: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
      transactionHash: keccak256(toHex(`transfer ${amount}`)),
      topics: encodeEventTopics({
        abi: erc20Abi,
        eventName: 'Transfer',
        args: { from: sender, to: cells[at]!.wallet.address as `0x${string}` },
      }),
      data: toHex(amount, { size: 32 }),
    })),
  };
}

/** Runs the work, and returns the number of calls to the node by method. */
async function callsDuring(work: () => Promise<void>): Promise<Record<string, number>> {
  const before = node.calls.length;
  await work();
  const counts = Map.groupBy(node.calls.slice(before), (method) => method);
  return Object.fromEntries([...counts].map(([method, calls]) => [method, calls.length]));
}

test('two cells cost as many calls as one, and each reports its own deposits', async () => {
  chain.blocks.set(6, blockWith([10, 20]));
  chain.blocks.set(8, blockWith([11, 21]));
  chain.head = 8;
  await pause(NEXT_ROUND_MS);
  const calls = await callsDuring(() => readAll(...cells));
  expect(calls).toEqual({ eth_blockNumber: 1, eth_getBlockByNumber: 3, eth_getLogs: 3 });
  expect(await amountsOf(cells[0]!)).toEqual([10, 11]);
  expect(await amountsOf(cells[1]!)).toEqual([20, 21]);
});

test('without a new block, a cell asks neither the node for blocks nor its database for a claim', async () => {
  await pause(NEXT_ROUND_MS);
  const [first, second] = cells as [TestCell, TestCell];
  let units = 0;
  const { services, database } = first.operations;
  const inUnit = inUnitOf(unitsOf(database));
  const job = followDeposits({
    services,
    inUnit: (work) => {
      units += 1;
      return inUnit(work);
    },
  });
  // The first run does not know the position yet.
  await job.run(() => undefined);
  const unitsBefore = units;
  const calls = await callsDuring(async () => {
    await job.run(() => undefined);
    await readAll(second);
  });
  expect(calls).toEqual({});
  expect(units).toBe(unitsBefore);
});

test('a cell that was unavailable catches up alone, and misses nothing', async () => {
  const [first, late] = cells as [TestCell, TestCell];
  const deposits = Array.from({ length: 40 }, (_, at) => 100 + at);
  for (const [at, amount] of deposits.entries())
    chain.blocks.set(6 + at, blockWith([amount, 1_000 + amount]));
  chain.head = 45;
  await pause(NEXT_ROUND_MS);
  await readAll(first);
  expect(await amountsOf(first)).toEqual(deposits);
  expect(await amountsOf(late)).toEqual([]);
  chain.head = 46;
  await pause(NEXT_ROUND_MS);
  await readAll(first, late);
  expect(await amountsOf(late)).toEqual(deposits.map((amount) => 1_000 + amount));
});

test('when blocks that are kept were replaced, every cell reads the new ones', async () => {
  chain.blocks.set(6, blockWith([10, 20]));
  chain.head = 7;
  await pause(NEXT_ROUND_MS);
  await readAll(...cells);
  chain.blocks.set(6, { ...blockWith([12, 22]), fork: 'another' });
  chain.blocks.set(7, { fork: 'another' });
  chain.head = 8;
  await pause(NEXT_ROUND_MS);
  await readAll(...cells);
  expect(await amountsOf(cells[0]!)).toEqual([10, 12]);
  expect(await amountsOf(cells[1]!)).toEqual([20, 22]);
  // Each of them goes back; the chain did so once.
  expect(errors).toEqual(['fully confirmed blocks were replaced; reading their transfers again']);
});

test('a cell that goes back does not drop the new blocks that another one has read', async () => {
  const [first, second] = cells as [TestCell, TestCell];
  chain.blocks.set(6, blockWith([10, 20]));
  chain.head = 7;
  await pause(NEXT_ROUND_MS);
  await readAll(first, second);
  chain.blocks.set(6, { ...blockWith([12, 22]), fork: 'another' });
  chain.blocks.set(7, { fork: 'another' });
  chain.head = 8;
  await pause(NEXT_ROUND_MS);
  await readAll(first);
  const calls = await callsDuring(() => readAll(second));
  expect(Object.keys(calls)).not.toContain('eth_getLogs');
  expect(await amountsOf(first)).toEqual([10, 12]);
  expect(await amountsOf(second)).toEqual([20, 22]);
});

test('a failed request is not kept for the other cell', async () => {
  const [first, second] = cells as [TestCell, TestCell];
  chain.blocks.set(6, blockWith([10, 20]));
  chain.head = 6;
  chain.answer = (method) =>
    method === 'eth_getLogs' ? { error: { code: -32000, message: 'later' } } : undefined;
  await pause(NEXT_ROUND_MS);
  await readAll(first);
  expect(await amountsOf(first)).toEqual([]);
  chain.answer = () => undefined;
  await readAll(second, first);
  expect(await amountsOf(first)).toEqual([10]);
  expect(await amountsOf(second)).toEqual([20]);
});
