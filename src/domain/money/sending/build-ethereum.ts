import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes } from '../../../crypto/encoding.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { decodeEthereumTransaction } from '../../../signing/ethereum/decode-transaction.ts';
import {
  type EthereumTransaction,
  prepareEthereumTransaction,
  signPreparedTransaction,
} from '../../../signing/ethereum/sign-transaction.ts';
import { parseQuantity } from '../../../signing/fields.ts';
import { transactionUnits } from '../../base/actions/decode-action.ts';
import { unfoldBatches } from '../../base/actions/unfold-batches.ts';
import type { BuiltTransaction } from './built-transaction.ts';
import { type EthereumPlan, givenNonce } from './plan-ethereum.ts';
import { reserveNonce } from './reserve-nonce.ts';

/**
 * Builds the bytes of a planned transaction and reserves its nonce until the database transaction ends.
 *
 * @param method the method under which policies evaluate it.
 * @throws SigningInputError for fields that the transaction's type cannot carry.
 */
export async function buildEthereum(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  plan: EthereumPlan,
  method: string,
): Promise<BuiltTransaction> {
  const { chain, address } = plan;
  const nonce =
    givenNonce(plan.transaction) ??
    (await reserveNonce(context, { caip2: chain.caip2, address }, plan.pendingCount ?? 0n));
  const transaction: EthereumTransaction = { ...plan.transaction, nonce };
  const prepared = await prepareEthereumTransaction(transaction);
  const units = transactionUnits(await decodeEthereumTransaction(prepared.wireBytes()));
  return {
    chain,
    action: unfoldBatches({ method, units }, address),
    nonce: hasOwnLane(transaction) ? undefined : nonce,
    request: transaction,
    async sign(privateKey) {
      const bytes = hexToBytes(signPreparedTransaction(privateKey, prepared).slice(2));
      return { bytes, hash: bytesTo0xHex(keccak_256(bytes)) };
    },
  };
}

// Each nonce lane of a Tempo account counts separately; the chain's count covers only the first lane.
function hasOwnLane(transaction: EthereumTransaction): boolean {
  const key = 'nonce_key' in transaction ? transaction.nonce_key : undefined;
  return key !== undefined && parseQuantity(key, '/transaction/nonce_key', 192) !== 0n;
}
