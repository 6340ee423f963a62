import { encodeEventTopics, erc20Abi, erc721Abi, getAddress, keccak256, pad, toHex } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { AppMoveEntity } from '../../../src/domain/base/processes/server-process.entity.ts';
import { claimTransfers } from '../../../src/domain/money/transactions/record-funds.ts';
import { ChainPositionEntity } from '../../../src/domain/money/transactions/transaction.entity.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { databaseKinds } from '../../support/databases.ts';
import { blockHash, makeNodeChain, type NodeChain, startNodeOf } from '../../support/nodes/node-chain.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import type { ScriptedNode } from '../../support/scripted-node.ts';

const CHAIN_ID = 31_337;
const caip2 = `eip155:${CHAIN_ID}`;
const sender = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const logger = getAddress('0x10663310663310663310663310663310663310aa');

// PUSH1 60 CALLDATASIZE SUB, CALLDATACOPY, the topics by CALLDATALOAD, LOG3: logs what it is called with.
const loggerCode = '0x6060360360606000376040356020356000356060360360 00a300'.replace(' ', '');
// PUSH1 0, PUSH1 0, REVERT
const revertingCode = '0x60006000fd';

interface Reported {
  readonly wallet_id: string;
  readonly idempotency_key: string;
  readonly asset: object;
  readonly amount: string;
  readonly block: { readonly number: number };
}

async function reported(operations: TestOperations): Promise<Reported[]> {
  const rows = await operations.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select('payload')
    .where('type', '=', 'wallet.funds_deposited')
    .orderBy('sequence')
    .execute();
  return rows.map(({ payload }) => JSON.parse(payload));
}

function jobOf(operations: TestOperations) {
  return followDeposits({ services: operations.services, inUnit: inUnitOf(unitsOf(operations.database)) });
}

/** Result: the number of pages. */
async function readAll(job: ReturnType<typeof jobOf>): Promise<number> {
  for (let pages = 1; ; pages += 1) if (!(await job.run(() => undefined))) return pages;
}

async function makeWallet(operations: TestOperations, chain_type = 'ethereum'): Promise<Wallet> {
  return (await operations.run('createWallet', { body: { chain_type } })).body as Wallet;
}

const transferTopics = (from: string, to: string) =>
  encodeEventTopics({
    abi: erc20Abi,
    eventName: 'Transfer',
    args: { from: from as `0x${string}`, to: to as `0x${string}` },
  }) as string[];

describe.each(databaseKinds)('transfers on a node of Ethereum, on %s', (kind) => {
  let anvil: Anvil;
  let operations: TestOperations;
  let wallet: Wallet;
  const errors: unknown[] = [];

  beforeAll(async () => {
    anvil = await startAnvil(CHAIN_ID);
    await anvil.ask('anvil_setCode', logger, loggerCode);
  });
  afterAll(() => anvil[Symbol.asyncDispose]());
  beforeEach(async () => {
    errors.length = 0;
    const log = { ...silentLog, error: (fields: object) => errors.push(fields) };
    const chains = connectChains([{ caip2, urls: [anvil.url], confirmations: 3 }], log);
    operations = await openOperations(kind, { chains });
    wallet = await makeWallet(operations);
    // Transfers before the first reading are not deposits.
    await mine(3);
    await pay(1n);
    await mine(3);
    await readAll(jobOf(operations));
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  async function mine(count: number): Promise<void> {
    for (let mined = 0; mined < count; mined += 1) await anvil.ask('evm_mine');
  }

  function pay(value: bigint, more: object = {}): Promise<unknown> {
    const gas = toHex(100_000);
    return anvil.ask('eth_sendTransaction', {
      ...{ from: sender, to: wallet.address, value: toHex(value), gas },
      ...more,
    });
  }

  function log(topics: readonly string[], amount: bigint): Promise<unknown> {
    const [first, from, to] = topics.map((topic) => topic.slice(2));
    return pay(0n, { to: logger, data: `0x${first}${from}${to}${toHex(amount, { size: 32 }).slice(2)}` });
  }

  test('a deposit from any sender is reported once, when its block has the confirmations', async () => {
    const hash = await pay(5n * 10n ** 17n);
    const tokenHash = await log(transferTopics(sender, wallet.address), 250n);
    const job = jobOf(operations);
    await mine(1);
    await readAll(job);
    await mine(1);
    await readAll(job);
    expect(await reported(operations)).toEqual([]);
    await mine(1);
    await readAll(job);
    await readAll(job);
    const block = (await anvil.ask('eth_getTransactionByHash', hash)) as { blockNumber: string };
    const number = Number(block.blockNumber);
    const { timestamp } = (await anvil.ask('eth_getBlockByNumber', block.blockNumber, false)) as {
      timestamp: string;
    };
    const common = {
      type: 'wallet.funds_deposited',
      wallet_id: wallet.id,
      caip2,
      sender: sender,
      recipient: wallet.address,
      block: { number, timestamp: Number(timestamp) },
    };
    expect(await reported(operations)).toEqual([
      {
        ...common,
        idempotency_key: `deposited:${caip2}:${hash}:n:${wallet.id}`,
        asset: { type: 'native-token', address: null },
        amount: '500000000000000000',
        transaction_hash: hash,
      },
      {
        ...common,
        idempotency_key: `deposited:${caip2}:${tokenHash}:0:${wallet.id}`,
        asset: { type: 'erc20', address: logger },
        amount: '250',
        transaction_hash: tokenHash,
      },
    ]);
  });

  test('what moves nothing is not reported', async () => {
    await pay(0n);
    await log(transferTopics(sender, wallet.address), 0n);
    const padded = transferTopics(sender, wallet.address);
    // The upper bytes of an address are zero.
    await log([padded[0]!, padded[1]!, padded[2]!.replace('0x00', '0x01')], 7n);
    await mine(1);
    await anvil.ask('anvil_setCode', wallet.address, revertingCode);
    await pay(9n);
    await mine(1);
    await anvil.ask('anvil_setCode', wallet.address, '0x');
    await mine(3);
    await readAll(jobOf(operations));
    expect(await reported(operations)).toEqual([]);
  });

  test('a deposit in a block that is replaced before it has the confirmations is never reported', async () => {
    const state = await anvil.ask('evm_snapshot');
    await pay(11n);
    await mine(2);
    await readAll(jobOf(operations));
    await anvil.ask('evm_revert', state);
    await pay(13n);
    await mine(5);
    await readAll(jobOf(operations));
    expect((await reported(operations)).map(({ amount }) => amount)).toEqual(['13']);
  });

  test('after a deeper reorganization, only the replaced blocks are read again', async () => {
    await pay(17n);
    await mine(3);
    await readAll(jobOf(operations));
    const state = await anvil.ask('evm_snapshot');
    await pay(19n);
    await mine(3);
    await readAll(jobOf(operations));
    await anvil.ask('evm_revert', state);
    await mine(1);
    await pay(23n);
    await mine(5);
    await readAll(jobOf(operations));
    expect(errors).toEqual([expect.objectContaining({ caip2, confirmations: 3 })]);
    expect((await reported(operations)).map(({ amount }) => amount)).toEqual(['17', '19', '23']);
  });

  test('an outage is made up for in pages of 16 blocks', async () => {
    for (let round = 0; round < 5; round += 1) {
      await pay(BigInt(100 + round));
      await anvil.ask('anvil_mine', toHex(10));
    }
    await mine(3);
    expect(await readAll(jobOf(operations))).toBe(4);
    expect((await reported(operations)).map(({ amount }) => amount)).toEqual([
      '100',
      '101',
      '102',
      '103',
      '104',
    ]);
  });

  test('what is read again after an app has come from another cell is reported once', async () => {
    const inUnit = inUnitOf(unitsOf(operations.database));
    const position = () => inUnit((em) => em.findOneOrFail(ChainPositionEntity, { caip2 }));
    const job = jobOf(operations);
    const { position: before } = await position();
    await pay(5n);
    await mine(3);
    await readAll(job);
    await inUnit(async (em) => {
      em.create(AppMoveEntity, {
        ...{ appId: 'an app', number: 1, state: 'arrived', moveId: '1-move', otherCell: 'old' },
        changedAtMs: operations.services.clock.now(),
      });
      await em.nativeUpdate(ChainPositionEntity, { caip2 }, { position: before });
    });
    await pay(6n);
    await mine(3);
    await readAll(jobOf(operations));
    expect((await reported(operations)).map(({ amount }) => amount)).toEqual(['5', '6']);
  });

  test('archived wallets and other addresses receive nothing', async () => {
    const other = await makeWallet(operations);
    await operations.run('archiveWallet', { path: { wallet_id: other.id } });
    await pay(3n, { to: other.address });
    await pay(3n, { to: sender });
    await mine(3);
    await readAll(jobOf(operations));
    expect(await reported(operations)).toEqual([]);
  });
});

// What nodes say does not depend on the database; how processes share the work does.
describe.each(databaseKinds)('transfers that scripted nodes list, on %s', (kind) => {
  const testNodes = test.skipIf(kind === 'postgres');
  const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48';
  const chainOfNodes = 'eip155:1';
  let chain: NodeChain;
  let operations: TestOperations;
  let wallet: Wallet;
  let nodes: ScriptedNode[];
  const errors: unknown[] = [];

  async function start(...of: readonly NodeChain[]): Promise<void> {
    nodes = await Promise.all(of.map(startNodeOf));
    const urls = nodes.map(({ url }) => url);
    const log = { ...silentLog, error: (_: object, message: string) => errors.push(message) };
    const chains = connectChains([{ caip2: chainOfNodes, urls, confirmations: 1, compareAgainMs: 1 }], log, {
      namedTokens: () => [usdc],
    });
    operations = await openOperations(kind, { chains });
    wallet = await makeWallet(operations);
    await readAll(jobOf(operations));
    errors.length = 0;
  }

  beforeEach(() => {
    chain = makeNodeChain(chainOfNodes, 5);
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
  });

  function transferLog(index: number, { token = usdc, hash = hashOf('a transaction') } = {}) {
    return {
      address: token,
      transactionHash: hash,
      topics: transferTopics(sender, wallet.address),
      data: toHex(100 + index, { size: 32 }),
    };
  }

  const hashOf = (text: string) => keccak256(toHex(text));
  const amounts = async () => (await reported(operations)).map(({ amount }) => Number(amount));

  testNodes('a block costs two calls, and one for each deposit of the native asset', async () => {
    await start(chain);
    const others = Array.from({ length: 300 }, (_, index) => ({
      hash: hashOf(`to another address ${index}`),
      from: sender,
      to: pad(toHex(index + 1), { size: 20 }),
      value: '0x1',
    }));
    const ours = { hash: hashOf('to us'), from: sender, to: wallet.address.toLowerCase(), value: '0x2' };
    chain.blocks.set(6, { transactions: [...others, ours], logs: [transferLog(0)] });
    chain.head = 8;
    const before = nodes[0]!.calls.length;
    await readAll(jobOf(operations));
    const counts = Object.groupBy(nodes[0]!.calls.slice(before), (method) => method);
    expect(
      Object.fromEntries(Object.entries(counts).map(([method, calls]) => [method, calls!.length])),
    ).toEqual({
      eth_blockNumber: 1,
      eth_getBlockByNumber: 3,
      eth_getLogs: 3,
      eth_getTransactionReceipt: 1,
    });
    expect(await amounts()).toEqual([2, 100]);
  });

  testNodes('a block with more deposits than a page is read in pages, each deposit once', async () => {
    await start(chain);
    chain.blocks.set(6, { logs: Array.from({ length: 250 }, (_, index) => transferLog(index)) });
    chain.head = 7;
    expect(await readAll(jobOf(operations))).toBe(3);
    expect(await amounts()).toEqual(Array.from({ length: 250 }, (_, index) => 100 + index));
  });

  testNodes(
    'what a node repeats is reported once; NFTs and a flood of an unnamed token are left out',
    async () => {
      await start(chain);
      const nft = encodeEventTopics({
        abi: erc721Abi,
        eventName: 'Transfer',
        args: { from: sender, to: wallet.address as `0x${string}`, tokenId: 5n },
      });
      const same = { ...transferLog(0), logIndex: '0x0' };
      const worthless = Array.from({ length: 50 }, (_, index) =>
        transferLog(1000 + index, { token: logger.toLowerCase(), hash: hashOf('a flood') }),
      );
      chain.blocks.set(6, {
        logs: [same, same, { ...transferLog(1), topics: nft, data: '0x' }, ...worthless],
      });
      chain.head = 6;
      await readAll(jobOf(operations));
      const [first, ...rest] = await amounts();
      expect(first).toBe(100);
      expect(rest).toEqual(Array.from({ length: 20 }, (_, index) => 1100 + index));
    },
  );

  testNodes('of a block whose logs are too many, those of named tokens are reported', async () => {
    await start(chain);
    chain.blocks.set(6, { logs: [transferLog(0, { token: logger.toLowerCase() }), transferLog(1)] });
    chain.blocks.set(7, { logs: [transferLog(2, { token: logger.toLowerCase() }), transferLog(3)] });
    chain.head = 7;
    const first = blockHash(chain, 6);
    chain.answer = (method, [filter]) => {
      const { address, blockHash: asked } = (filter ?? {}) as { address?: unknown; blockHash?: string };
      if (method !== 'eth_getLogs' || address !== undefined) return undefined;
      return asked === first
        ? { error: { code: -32005, message: 'query returned more than 10000 results' } }
        : { result: 'x'.repeat(17 * 1024 * 1024) };
    };
    await readAll(jobOf(operations));
    expect(await amounts()).toEqual([101, 103]);
    expect(errors).toEqual(Array(2).fill(expect.stringContaining('only deposits of named tokens')));
  });

  testNodes(
    'nodes that disagree about a block stop its deposits; nothing is lost when they agree',
    async () => {
      const liar = makeNodeChain(chainOfNodes, 5);
      await start(chain, liar);
      chain.blocks.set(6, {});
      // A deposit that is not on the chain.
      liar.blocks.set(6, { logs: [transferLog(900)] });
      [chain.head, liar.head] = [6, 6];
      await readAll(jobOf(operations));
      expect(await amounts()).toEqual([]);
      chain.blocks.set(7, { logs: [transferLog(1)] });
      liar.blocks.clear();
      liar.blocks.set(7, { logs: [transferLog(1)] });
      [chain.head, liar.head] = [7, 7];
      await readAll(jobOf(operations));
      expect(await amounts()).toEqual([101]);
    },
  );

  testNodes.each([
    [
      'a block of another number',
      'eth_getBlockByNumber',
      { number: '0x1', hash: hashOf('x'), parentHash: hashOf('y'), timestamp: '0x1', transactions: [] },
    ],
    ['no block', 'eth_getBlockByNumber', null],
    ['logs of another block', 'eth_getLogs', [{ blockHash: hashOf('x'), logIndex: '0x0' }]],
    ['logs that are no list', 'eth_getLogs', { length: 1 }],
    ['a removed log', 'eth_getLogs', [{ removed: true }]],
    ['a head that is no number', 'eth_blockNumber', '-1'],
  ])('%s as an answer moves nothing', async (_, trap, result) => {
    await start(chain);
    chain.blocks.set(6, { logs: [transferLog(0)] });
    chain.head = 6;
    chain.answer = (method) => (method === trap ? { result } : undefined);
    await readAll(jobOf(operations));
    expect(await amounts()).toEqual([]);
    chain.answer = () => undefined;
    await readAll(jobOf(operations));
    expect(await amounts()).toEqual([100]);
  });

  test('of two processes, one reads at a time', async () => {
    await start(chain);
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    try {
      for (let number = 6; number < 26; number += 1)
        chain.blocks.set(number, { logs: [transferLog(number)] });
      chain.head = 25;
      const before = nodes[0]!.calls.length;
      const jobs = [jobOf(operations), jobOf(other), jobOf(other)];
      await Promise.all(jobs.map(readAll));
      await readAll(jobOf(other));
      const blocks = nodes[0]!.calls.slice(before).filter((method) => method === 'eth_getLogs');
      expect(blocks).toHaveLength(20);
      expect(await amounts()).toEqual(Array.from({ length: 20 }, (_, index) => 106 + index));
    } finally {
      if (other !== operations) await other[Symbol.asyncDispose]();
    }
  });

  test('the claim of a process that died expires', async () => {
    await start(chain);
    chain.blocks.set(6, { logs: [transferLog(0)] });
    chain.head = 6;
    const inUnit = inUnitOf(unitsOf(operations.database));
    const { nowMs } = operations.clock;
    // The process ends right after its claim.
    await inUnit((em) => claimTransfers(em, { owner: 'died', caip2: chainOfNodes, nowMs, leaseMs: 60_000 }));
    await readAll(jobOf(operations));
    expect(await amounts()).toEqual([]);
    operations.clock.nowMs += 60_000;
    await readAll(jobOf(operations));
    expect(await amounts()).toEqual([100]);
  });
});
