import { Keypair } from '@solana/web3.js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { call, control } from '../../support/call.ts';
import { type LiteSvmNode, startLiteSvmNode } from '../../support/litesvm-node.ts';
import { type Lie, type LyingNode, startLyingNode } from '../../support/nodes/lying-node.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

// A node that lags knows neither a new transaction nor its blockhash, which looks like one that has expired.

const caip2 = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const genesis = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
const receiver = Keypair.fromSeed(new Uint8Array(32).fill(5)).publicKey.toBase58();

let svm: LiteSvmNode;
let nodes: LyingNode[];
let sandbox: TestSandbox;
/** Slots that have passed on the chain; the machine itself only counts transactions. */
let slots: number;

beforeEach(async () => {
  svm = await startLiteSvmNode(genesis);
  slots = 0;
  nodes = [await startLyingNode(svm.url, later), await startLyingNode(svm.url, later)];
});
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]();
  for (const node of nodes) await node[Symbol.asyncDispose]();
  await svm[Symbol.asyncDispose]();
});

const later: Lie = async (method, _params, honest) =>
  method === 'getSlot' ? { result: Number((await honest()).result) + slots } : undefined;

const behind: Lie = async (method, params, honest) => {
  const context = { slot: 1 };
  if (method === 'getSignatureStatuses') return { result: { context, value: [null] } };
  if (method === 'isBlockhashValid') return { result: { context, value: false } };
  return later(method, params, honest);
};

async function transfer(count: number) {
  const urls = nodes.slice(0, count).map(({ url }) => url);
  sandbox = await startSandbox({ rpc: [{ caip2, urls, confirmations: 0, compareAgainMs: 1 }] });
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  svm.fund(wallet.address, 10n ** 9n);
  const body = {
    source: { asset: 'sol', chain: 'solana', amount: '0.01' },
    destination: { address: receiver },
  } as never;
  const { body: action } = await call(sandbox, 'transferFromWallet', {
    path: { wallet_id: wallet.id },
    body,
  });
  const path = { wallet_id: wallet.id, action_id: action.id };
  /** The status after some time. */
  return async (passed: { seconds: number; slots: number }): Promise<string> => {
    slots += passed.slots;
    await waitSeconds(sandbox, passed.seconds);
    return (await call(sandbox, 'getWalletAction', { path })).body.status as string;
  };
}

async function failures(): Promise<readonly string[]> {
  const { body } = await control(sandbox, 'GET', '/_sandbox/events?limit=100');
  return (body.data as { type: string }[]).map(({ type }) => type).filter((type) => /failed/.test(type));
}

test('one node: a transfer stays pending while it lags, and succeeds afterwards', async () => {
  nodes[0]!.lie = behind;
  const after = await transfer(1);
  for (let time = 0; time < 5; time += 1) expect(await after({ seconds: 3, slots: 8 })).toBe('pending');
  nodes[0]!.lie = later;
  expect(await after({ seconds: 5, slots: 10 })).toBe('succeeded');
  expect(await failures()).toEqual([]);
});

test('two nodes: a transfer stays pending for as long as one of them lags', async () => {
  const after = await transfer(2);
  nodes[0]!.lie = behind;
  for (let time = 0; time < 5; time += 1) expect(await after({ seconds: 60, slots: 400 })).toBe('pending');
  nodes[0]!.lie = later;
  expect(await after({ seconds: 60, slots: 10 })).toBe('succeeded');
  expect(await failures()).toEqual([]);
});

test('a transfer that no node knows fails after several looks at an expired blockhash', async () => {
  for (const node of nodes) {
    node.lie = (method, params, honest) =>
      method === 'sendTransaction' ? { status: 503, text: 'busy' } : behind(method, params, honest);
  }
  const after = await transfer(2);
  expect(await after({ seconds: 60, slots: 400 })).toBe('pending');
  expect(await after({ seconds: 60, slots: 400 })).toBe('pending');
  expect(await after({ seconds: 60, slots: 400 })).toBe('rejected');
});
