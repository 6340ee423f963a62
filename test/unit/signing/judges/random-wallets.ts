import { createHash, randomInt } from 'node:crypto';
import {
  type ChainType,
  deriveWallet,
  generatePrivateKey,
  type WalletKeys,
} from '../../../../src/engine/signing/chains.ts';
import { figureSize, isLong } from '../../../figures/figure.ts';

/** The number of random wallets per library; 10,000 with `TEST_LONG=1`. */
export const walletCount = figureSize({ short: 30, long: 10_000 });

/** The timeout of tests over all of them, ms. */
export const judgeTimeout = isLong ? 3_600_000 : 90_000;

/** Printed with every judge's test; `TEST_SEED` repeats a run. */
export const seed = process.env.TEST_SEED ?? String(randomInt(2 ** 47));

export interface RandomWallet extends WalletKeys {
  readonly index: number;
  readonly secret: Uint8Array;
  /** The same bytes for the same seed, wallet and label. */
  bytes(label: string, length: number): Uint8Array;
  /** From 0 to `below` - 1. */
  number(label: string, below: number): number;
}

/** A generator, so that ten thousand wallets need no memory. */
export async function* randomWallets(
  chainType: ChainType,
  count: number = walletCount,
): AsyncGenerator<RandomWallet> {
  for (let index = 0; index < count; index += 1) {
    const bytes = (label: string, length: number) =>
      new Uint8Array(
        createHash('shake256', { outputLength: length }).update(`${seed}/${index}/${label}`).digest(),
      );
    const secret = await generatePrivateKey(chainType, bytes('secret', 32));
    yield {
      index,
      secret,
      ...(await deriveWallet(chainType, secret)),
      bytes,
      number: (label, below) => Number(new DataView(bytes(label, 8).buffer).getBigUint64(0) % BigInt(below)),
    };
  }
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

export function unhex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.replace(/^0x/, ''), 'hex'));
}
