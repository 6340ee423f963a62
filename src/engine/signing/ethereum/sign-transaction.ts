import { keccak_256 } from '@noble/hashes/sha3.js';
import { hexToBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { loadOnce } from '../../load-once.ts';
import { parseEvmAddress } from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { ethereumAddress, signatureTuple } from './signer.ts';
import type { TempoTransaction } from './tempo-transaction.ts';
import { type PreparedTransaction, prepareTransaction, type StandardTransaction } from './transaction.ts';

/** Longer signing bytes are processed in slices. In hex characters; shorter ones take a few milliseconds. */
const LARGE_CHARACTERS = 200_000;

const loadTempo = loadOnce(() => import('./tempo-transaction.ts'));

export type EthereumTransaction = StandardTransaction | TempoTransaction;

/**
 * `eth_signTransaction`: returns the signed wire bytes as 0x hex, with exactly the given fields. Supports types 0
 * (EIP-155 with a chain id), 1 (EIP-2930), 2 (EIP-1559), 4 (EIP-7702) and 118 (Tempo). `from`, if given, must be the
 * wallet.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export async function signEthereumTransaction(
  secret: Uint8Array,
  params: { readonly transaction: EthereumTransaction },
): Promise<`0x${string}`> {
  const prepared = await prepareEthereumTransaction(params.transaction);
  assertFrom(secret, params.transaction.from);
  return signPreparedTransaction(secret, prepared);
}

/** The signed wire bytes of a validated transaction as 0x hex; their keccak256 is the transaction hash. */
export function signPreparedTransaction(secret: Uint8Array, prepared: PreparedTransaction): `0x${string}` {
  const digest = keccak_256(hexToBytes(prepared.signingBytes().slice(2)));
  return prepared.wireBytes(signatureTuple(ecBackend.sign(digest, secret)));
}

/**
 * Validates a transaction of any type. Policies evaluate `decodeEthereumTransaction(prepared.wireBytes())`.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export async function prepareEthereumTransaction(
  transaction: EthereumTransaction,
): Promise<PreparedTransaction> {
  const prepared = isTempo(transaction)
    ? (await loadTempo()).prepareTempoTransaction(transaction)
    : prepareTransaction(transaction);
  // The longest access lists take 20 ms to read, and as long to decode or to hash.
  if (prepared.signingBytes().length > LARGE_CHARACTERS)
    await new Promise((resolve) => setImmediate(resolve));
  return prepared;
}

function isTempo(transaction: EthereumTransaction): transaction is TempoTransaction {
  return transaction.type === 118;
}

function assertFrom(secret: Uint8Array, from: string | undefined): void {
  if (from === undefined) return;
  const address = ethereumAddress(secret);
  if (parseEvmAddress(from, '/transaction/from') !== address.toLowerCase()) {
    throw new InvalidTransactionError(
      '/transaction/from',
      `expected the wallet's address \`${address}\`, got \`${from}\``,
    );
  }
}
