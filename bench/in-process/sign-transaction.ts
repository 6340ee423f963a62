import { parseArgs } from 'node:util';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { ecBackend } from '../../src/engine/crypto/secp256k1.ts';
import { signEthereumTransaction } from '../../src/engine/signing/ethereum/sign-transaction.ts';
import { reportProgress } from './storage-rounds.ts';

// Encoding and signing a transaction: our codec and the library that we sign with, and viem.

// The part of viem that is used. Its types are not available: it is installed in `bench/`, outside the type check.
interface Account {
  signTransaction(transaction: object): Promise<string>;
}
const name: string = 'viem/accounts';
const { privateKeyToAccount } = (await import(name)) as { privateKeyToAccount(secret: string): Account };

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const COUNT = 2_000;
const secret = new Uint8Array(32).fill(7);
const account = privateKeyToAccount(`0x${Buffer.from(secret).toString('hex')}`);
const to = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const data =
  `0xa9059cbb${'00'.repeat(12)}${'9858effd232b4033e47d90003d41ec34ecaeda94'}${'00'.repeat(31)}64` as const;

/** A transfer of a token, of its own nonce. */
const ours = (nonce: number) =>
  signEthereumTransaction(secret, {
    transaction: {
      type: 2,
      chain_id: 8453,
      nonce,
      to,
      value: '0x0',
      data,
      gas_limit: '0xfde8',
      max_fee_per_gas: '0x3b9aca00',
      max_priority_fee_per_gas: '0xf4240',
    },
  });
const viem = (nonce: number) =>
  account.signTransaction({
    type: 'eip1559',
    chainId: 8453,
    nonce,
    to,
    value: 0n,
    data,
    gas: 65_000n,
    maxFeePerGas: 1_000_000_000n,
    maxPriorityFeePerGas: 1_000_000n,
  });

/** What no codec can avoid: one hash of as many bytes, and the signature. */
const bytes = new Uint8Array(110);
const limit = (nonce: number) => {
  bytes[0] = nonce;
  return ecBackend.sign(keccak_256(bytes), secret);
};

if ((await ours(7)) !== (await viem(7))) throw new Error('both must sign the same bytes');
const measures = { ours, viem, limit };
type Name = keyof typeof measures;
const best = new Map<Name, number>();
for (let round = 0; round <= Number(values.rounds); round += 1) {
  reportProgress(round === 0 ? 'warming up' : `round ${round} of ${values.rounds}`);
  for (const [name, sign] of Object.entries(measures) as [Name, (nonce: number) => unknown][]) {
    const before = process.cpuUsage();
    for (let nonce = 0; nonce < COUNT; nonce += 1) await sign(nonce);
    const { user, system } = process.cpuUsage(before);
    // The first round is a warm-up.
    const least = Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, (user + system) / COUNT);
    if (round > 0) best.set(name, least);
  }
}
process.send?.(Object.fromEntries(best));
process.disconnect?.();
