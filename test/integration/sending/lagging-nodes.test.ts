import { toHex } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { call, control } from '../../support/call.ts';
import { type LyingNode, startLyingNode, withoutReceipts } from '../../support/nodes/lying-node.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

// A client that sees `failed` pays again, so nodes that lag, forget or lie must not make a paid transfer fail.

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const ether = 10n ** 18n;
const ending = ['failed', 'replaced', 'rejected'];
const caip2 = 'eip155:8453';

let anvil: Anvil;
let nodes: [LyingNode, LyingNode];
let sandbox: TestSandbox;
let wallet: Wallet;

/** A sandbox on one node or two. */
async function open(count: 1 | 2): Promise<void> {
  const urls = nodes.slice(0, count).map(({ url }) => url);
  // Deposits are not followed: they would be read from every block.
  sandbox = await startSandbox({ rpc: [{ caip2, urls, confirmations: 0, compareAgainMs: 1 }] });
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
  await anvil.ask('anvil_setBalance', wallet.address, toHex(ether));
}

beforeEach(async () => {
  anvil = await startAnvil(8453);
  nodes = [await startLyingNode(anvil.url), await startLyingNode(anvil.url)];
});
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]();
  for (const node of nodes) await node[Symbol.asyncDispose]();
  await anvil[Symbol.asyncDispose]();
});

const mine = (blocks: number) => anvil.ask('anvil_mine', toHex(blocks));
const received = async () => BigInt((await anvil.ask('eth_getBalance', receiver, 'latest')) as string);

interface Begun {
  readonly actionId: string;
  /** What a client that polls has seen, in order. */
  readonly seen: string[];
}

async function transfer(): Promise<Begun> {
  const body = {
    source: { asset: 'eth', chain: 'base', amount: '0.01' },
    destination: { address: receiver },
  } as never;
  const { body: action } = await call(sandbox, 'transferFromWallet', {
    path: { wallet_id: wallet.id },
    body,
  });
  return { actionId: action.id, seen: [] };
}

async function poll({ actionId, seen }: Begun): Promise<string> {
  const path = { wallet_id: wallet.id, action_id: actionId };
  const { body } = await call(sandbox, 'getWalletAction', { path, query: { include: 'steps' } });
  const [step] = (body as unknown as { steps: { status: string }[] }).steps;
  const { status } = body as unknown as { status: string };
  seen.push(status, step!.status);
  return `${status} ${step!.status}`;
}

/** Mines and polls for a while. */
async function pass(begun: Begun, { times, blocks = 1, seconds = 60 }: Record<string, number>) {
  for (let done = 0; done < times!; done += 1) {
    if (blocks > 0) await mine(blocks);
    await waitSeconds(sandbox, seconds);
    await poll(begun);
  }
}

async function events(): Promise<string[]> {
  const { body } = await control(sandbox, 'GET', '/_sandbox/events?limit=100');
  const types = (body.data as { type: string }[]).map(({ type }) => type);
  return types.filter((type) => /^(transaction|wallet_action)\./.test(type));
}

const isLong = process.env.TEST_LONG === '1';
const LOOKS = isLong ? 4 : 2;
const lagging = [
  ['the first of two', 2, [0]],
  ['the only node', 1, [0]],
  ['the second of two', 2, [1]],
] as const;

describe.each(isLong ? lagging : lagging.slice(0, 1))(
  'a node that lags with receipts: %s',
  (_name, count, lagging) => {
    test('the transfer stays pending, whatever it lasts, and succeeds afterwards', async () => {
      await open(count);
      const begun = await transfer();
      for (const index of lagging) nodes[index].lie = withoutReceipts;
      await pass(begun, { times: LOOKS, seconds: 3 });
      expect(await received()).toBe(ether / 100n);
      // Long after the block is final.
      await pass(begun, { times: LOOKS, blocks: 70 });
      expect(new Set(begun.seen)).toEqual(new Set(['pending']));
      for (const node of nodes) node.lie = () => undefined;
      await pass(begun, { times: 1 });
      expect(await poll(begun)).toBe('succeeded confirmed');
      expect(begun.seen.filter((status) => ending.includes(status))).toEqual([]);
      expect((await events()).filter((type) => /failed|replaced/.test(type))).toEqual([]);
      expect(await received()).toBe(ether / 100n);
    });

    test('a confirmed transfer stays confirmed when it forgets the receipt', async () => {
      await open(count);
      const begun = await transfer();
      await pass(begun, { times: 1, seconds: 10 });
      expect(await poll(begun)).toBe('succeeded confirmed');
      for (const index of lagging) nodes[index].lie = withoutReceipts;
      await pass(begun, { times: LOOKS, blocks: 70 });
      for (const node of nodes) node.lie = () => undefined;
      await pass(begun, { times: 1 });
      expect(new Set(begun.seen)).toEqual(new Set(['succeeded', 'confirmed']));
      const recorded = (await events()).filter((type) => type.startsWith('transaction.'));
      expect(recorded).not.toContain('transaction.replaced');
      expect(recorded.filter((type) => type === 'transaction.confirmed')).toHaveLength(1);
    });
  },
);

test('a single node that lags and has no state of old blocks: a paid transfer stays pending for hours', async () => {
  await open(1);
  const begun = await transfer();
  nodes[0].lie = (method, params, honest) =>
    isOldCount(method, params) ? missingState : withoutReceipts(method, params, honest);
  await pass(begun, { times: 3, blocks: 20, seconds: 5 });
  nodes[0].lie = (method, params) => (isOldCount(method, params) ? missingState : undefined);
  await pass(begun, { times: 1 });
  expect(await poll(begun)).toBe('succeeded confirmed');
});

const missingState = { error: { code: -32000, message: 'missing trie node' } };

function isOldCount(method: string, params: readonly unknown[]): boolean {
  return method === 'eth_getTransactionCount' && /^0x/.test(String(params[1]));
}

/** Another program that holds the wallet's key pays more for the same nonce. */
async function outbid(): Promise<string> {
  await anvil.ask('anvil_impersonateAccount', wallet.address);
  return (await anvil.ask('eth_sendTransaction', {
    ...{ from: wallet.address, to: wallet.address, value: '0x1', nonce: '0x0', gas: '0x5208' },
    ...{ maxFeePerGas: toHex(10n ** 12n), maxPriorityFeePerGas: toHex(10n ** 11n) },
  })) as string;
}

describe('a transfer whose nonce another transaction uses', () => {
  test('a transfer whose nonce another transaction uses fails once that one is final, and names it', async () => {
    await open(2);
    const begun = await transfer();
    const byHash = await outbid();
    await pass(begun, { times: 5, seconds: 10 });
    expect(new Set(begun.seen)).toEqual(new Set(['pending']));
    await pass(begun, { times: 1, blocks: 70 });
    expect(await poll(begun)).toBe('failed replaced');
    const { body } = await call(sandbox, 'getWalletAction', {
      path: { wallet_id: wallet.id, action_id: begun.actionId },
    });
    expect(body).toMatchObject({ failure_reason: { message: `replaced by ${byHash}` } });
    expect(await received()).toBe(0n);
  });

  test('fails after several looks at final blocks if nodes have no state of old blocks', async () => {
    await open(2);
    for (const node of nodes) {
      node.lie = (method, params) => (isOldCount(method, params) ? missingState : undefined);
    }
    const begun = await transfer();
    await outbid();
    await pass(begun, { times: 1, blocks: 70 });
    await pass(begun, { times: 1, blocks: 70 });
    expect(new Set(begun.seen)).toEqual(new Set(['pending']));
    await pass(begun, { times: 5, blocks: 140 });
    expect(await poll(begun)).toBe('failed replaced');
  });

  test('a transfer whose nonce another transaction uses stays pending for ever while one of two nodes says that it is not used', async () => {
    await open(2);
    const begun = await transfer();
    await outbid();
    await mine(1);
    nodes[1].lie = (method) => (method === 'eth_getTransactionCount' ? { result: '0x0' } : undefined);
    await pass(begun, { times: 5, blocks: 140, seconds: isLong ? 3600 : 60 });
    expect(new Set(begun.seen)).toEqual(new Set(['pending']));
  });
});

describe('one of two nodes lies', () => {
  const receiptWith = (change: object) =>
    (async (method, _params, honest) => {
      if (method !== 'eth_getTransactionReceipt') return undefined;
      const { result } = await honest();
      return { result: result === null ? null : { ...(result as object), ...change } };
    }) as LyingNode['lie'];

  const lies: readonly (readonly [string, LyingNode['lie']])[] = [
    ['that the transaction reverted', receiptWith({ status: '0x0' })],
    ['about the fee', receiptWith({ gasUsed: '0xffffff' })],
    ['about the block', receiptWith({ blockHash: `0x${'ab'.repeat(32)}` })],
    ['that there is no receipt', withoutReceipts],
  ];

  test.each(isLong ? lies : lies.slice(0, 1))(
    '%s: the transfer stays pending until they agree',
    async (_name, lie) => {
      await open(2);
      const begun = await transfer();
      nodes[1].lie = lie;
      await pass(begun, { times: 3, blocks: 35 });
      expect(new Set(begun.seen)).toEqual(new Set(['pending']));
      nodes[1].lie = () => undefined;
      await pass(begun, { times: 1 });
      expect(await poll(begun)).toBe('succeeded confirmed');
    },
  );

  test('that a block is final: the transaction is not finalized before the other one says so', async () => {
    await open(2);
    nodes[0].lie = async (method, params) =>
      method === 'eth_getBlockByNumber' && params[0] === 'finalized'
        ? { result: await anvil.ask(method, 'latest', false) }
        : undefined;
    const begun = await transfer();
    await pass(begun, { times: 2, seconds: 10 });
    const path = { wallet_id: wallet.id, action_id: begun.actionId };
    const { body } = await call(sandbox, 'getWalletAction', { path, query: { include: 'steps' } });
    expect((body as { steps?: unknown }).steps).toMatchObject([{ status: 'confirmed', finalized: false }]);
  });

  test('that it refuses the bytes, which it relays: the transfer is not refused', async () => {
    await open(2);
    nodes[0].lie = async (method, _params, honest) => {
      if (method !== 'eth_sendRawTransaction') return undefined;
      await honest();
      return { error: { code: -32000, message: 'insufficient funds for gas * price + value' } };
    };
    const begun = await transfer();
    await pass(begun, { times: 1, seconds: 10 });
    expect(await poll(begun)).toBe('succeeded confirmed');
  });

  test('a refusal does not count while another node may have received the bytes', async () => {
    await open(2);
    let isSilent = true;
    nodes[0].lie = async (method, _params, honest) => {
      if (method !== 'eth_sendRawTransaction' || !isSilent) return undefined;
      await honest();
      return { status: 502, text: 'bad gateway' };
    };
    nodes[1].lie = (method) =>
      method === 'eth_sendRawTransaction'
        ? { error: { code: -32000, message: 'insufficient funds for gas * price + value' } }
        : undefined;
    const begun = await transfer();
    await mine(1);
    isSilent = false;
    await pass(begun, { times: 1, seconds: 30 });
    expect(await poll(begun)).toBe('succeeded confirmed');
  });
});
