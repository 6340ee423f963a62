import { keccak_256 } from '@noble/hashes/sha3.js';
import { transactionUnits, unfoldBatches, withoutSuffix } from '../../../engine/actions/decode-action.ts';
import { bytesTo0xHex, hexToBytes } from '../../../engine/crypto/encoding.ts';
import {
  decodeEthereumTransaction,
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../../../engine/signing/ethereum/any-transaction.ts';
import { parseQuantity } from '../../../engine/signing/fields.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { BuiltTransaction, SignedBytes, SigningKey } from './broadcast.ts';
import { authorizationsOf, holdNonces } from './nonces.ts';
import { type EthereumPlan, givenNonce, readAuthorizations } from './plan-ethereum.ts';

/**
 * Signs a complete transaction. Returns its bytes and their hash.
 *
 * @throws SigningInputError
 */
export async function signEthereum(key: SigningKey, transaction: EthereumTransaction): Promise<SignedBytes> {
  const { signed_transaction: signed } = await key.sign('eth_signTransaction', { transaction });
  const bytes = hexToBytes(signed.slice(2));
  return { bytes, hash: bytesTo0xHex(keccak_256(bytes)) };
}

/**
 * Builds the bytes of a planned transaction and reserves the nonces that it uses until the database transaction ends.
 *
 * @param method the method under which policies evaluate the transaction.
 * @throws SigningInputError for fields that the transaction's type cannot carry; what `holdNonces` throws.
 */
export async function buildEthereum(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  plan: EthereumPlan,
  method: string,
): Promise<BuiltTransaction> {
  const { chain, address } = plan;
  const hasLane = hasOwnLane(plan.transaction);
  const { nonce, afterTransactionId, authorizations } = await holdNonces(context, {
    account: { caip2: chain.caip2, address },
    pendingCount: plan.pendingCount,
    nonce: givenNonce(plan.transaction),
    hasOwnLane: hasLane,
    authorizations: authorizationsOf(readAuthorizations(plan.transaction), chain),
  });
  const transaction: EthereumTransaction = { ...plan.transaction, nonce };
  const prepared = await prepareEthereumTransaction(transaction);
  const units = transactionUnits(await decodeEthereumTransaction(prepared.wireBytes()));
  return {
    chain,
    action: unfoldBatches({ method, units: withoutSuffix(units, plan.dataSuffix) }, address),
    nonce: hasLane ? undefined : nonce,
    afterTransactionId: hasLane ? undefined : afterTransactionId,
    authorizations,
    request: transaction,
    sign: (key) => signEthereum(key, transaction),
  };
}

// On Tempo, each nonce lane of an account counts separately. The chain's count covers only the first lane.
function hasOwnLane(transaction: EthereumTransaction): boolean {
  const key = 'nonce_key' in transaction ? transaction.nonce_key : undefined;
  return key !== undefined && parseQuantity(key, '/transaction/nonce_key', 192) !== 0n;
}
