import { setTimeout as pause } from 'node:timers/promises';
import { toHex } from 'viem';
import type { Random } from '../simulation/random.ts';
import { type Lie, withoutReceipts } from '../support/nodes/lying-node.ts';
import { deckOf } from './attack.ts';
import type { Notes } from './observe.ts';
import type { World } from './world.ts';

interface LieCase {
  readonly subject: string;
  readonly lie: Lie;
  /** How long requests may still wait for it after its end. */
  readonly aftermathMs?: number;
}

const on =
  (method: string, answer: Lie): Lie =>
  (asked, ...rest) =>
    asked === method ? answer(asked, ...rest) : undefined;
const message = 'vm execution error'.repeat(58_000);
const [NONE, HANGS_MS] = [{ result: null }, 15_000];

const lies: readonly LieCase[] = [
  { subject: 'receipts that are not there', lie: withoutReceipts },
  {
    subject: 'receipts that are not there, with the nonce used',
    lie: async (method, _params, honest) => {
      if (method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash') return NONE;
      if (method !== 'eth_getTransactionCount') return undefined;
      return { result: toHex(Number((await honest()).result) + 1) };
    },
  },
  {
    subject: 'nonces ahead',
    lie: on('eth_getTransactionCount', async (_method, _params, honest) => ({
      result: toHex(Number((await honest()).result) + 7),
    })),
  },
  { subject: 'nonces behind', lie: on('eth_getTransactionCount', () => ({ result: '0x0' })) },
  {
    subject: 'an error message of 1 MB',
    lie: on('eth_estimateGas', () => ({ error: { code: -32_000, message } })),
  },
  {
    subject: 'other hashes of blocks',
    lie: async (method, _params, honest) => {
      if (method !== 'eth_getBlockByNumber' && method !== 'eth_getTransactionReceipt') return undefined;
      const { result } = (await honest()) as { result: object | null };
      const hash = `0x${'ab'.repeat(32)}`;
      return { result: result === null ? null : { ...result, hash, blockHash: hash } };
    },
  },
  {
    subject: 'a receipt of a failure',
    lie: on('eth_getTransactionReceipt', async (_method, _params, honest) => {
      const { result } = (await honest()) as { result: object | null };
      return { result: result === null ? null : { ...result, status: '0x0' } };
    }),
  },
  { subject: 'prices of a fortune', lie: on('eth_gasPrice', () => ({ result: `0x${'f'.repeat(20)}` })) },
  {
    subject: 'a refusal of what was sent',
    lie: on('eth_sendRawTransaction', () => ({ error: { code: -32_000, message: 'nonce too low' } })),
  },
  {
    subject: 'acceptance without a broadcast',
    lie: on('eth_sendRawTransaction', () => ({ result: `0x${'cd'.repeat(32)}` })),
  },
  { subject: 'wrong types', lie: () => ({ result: { a: [null, 'x'] } }) },
  { subject: 'no JSON', lie: () => ({ status: 200, text: '<html>' }) },
  { subject: 'overload', lie: () => ({ status: 503 }) },
  {
    ...{ subject: 'no answer', aftermathMs: 8_000 },
    lie: async () => {
      await pause(HANGS_MS, undefined, { ref: false });
      return NONE;
    },
  },
];

/** Lies as the preferred one of two nodes. */
export async function lyingNode(
  world: World,
  { notes, random, signal, liesMs }: { notes: Notes; random: Random; signal: AbortSignal; liesMs: number },
): Promise<void> {
  const deck = deckOf(lies, random);
  while (!signal.aborted) {
    const { subject, lie, aftermathMs = 0 } = deck.next().value;
    notes.attack('lying node', subject);
    await notes.cut(subject, 'node', async () => {
      world.node.lie = lie;
      await pause(liesMs, undefined, { signal }).catch(() => undefined);
      world.node.lie = () => undefined;
      await pause(aftermathMs, undefined, { signal }).catch(() => undefined);
    });
    await pause(liesMs / 2, undefined, { signal }).catch(() => undefined);
  }
}
