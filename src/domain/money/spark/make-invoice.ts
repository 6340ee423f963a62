import { ApiError, invalidField } from '../../../errors.ts';
import type { SparkLightningReceiveRequest, WalletRpcRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { isIdentityKey } from '../../../signing/spark.ts';
import { callChain } from '../sending/call-chain.ts';
import type { SparkAccount } from './require-spark.ts';
import { isoTime, satoshi } from './spark-view.ts';

type Params = Extract<WalletRpcRequest, { method: 'createLightningInvoice' }>['params'];

// CHOICE: 30 days, the default of Spark's own wallets.
const USUAL_EXPIRY_SECONDS = 30 * 24 * 3600;
const MOST_MEMO_BYTES = 639;
/** BOLT 11 encodes the timestamp in 35 bits. */
const LAST_SECOND = 2 ** 35 - 1;
/** 9999-12-31T23:59:59Z, the last second that the contract's formats can express. */
const LAST_EXPIRY_SECOND = 253_402_300_799;

/**
 * Creates an invoice of the operators' node that pays the wallet or another identity key.
 *
 * CHOICE: each call creates a new invoice and nothing is stored; the invoice itself names its receiver.
 *
 * @throws ApiError invalid_data; not_supported when the current time cannot be encoded in an invoice;
 * transaction_broadcast_failure when the operators cannot be reached.
 */
export async function makeInvoice(
  { ids, nowMs }: Pick<OperationContext, 'ids' | 'nowMs'>,
  { operators, publicKey, network }: SparkAccount,
  params: Params,
): Promise<SparkLightningReceiveRequest> {
  const createdAtSeconds = Math.floor(nowMs / 1000);
  if (createdAtSeconds > LAST_SECOND) {
    throw new ApiError('not_supported', 'no invoice can be dated after the year 3058');
  }
  const expirySeconds = params.expiry_seconds ?? USUAL_EXPIRY_SECONDS;
  if (createdAtSeconds + expirySeconds > LAST_EXPIRY_SECOND) {
    throw invalidField('/params/expiry_seconds', 'expected an invoice that expires before the year 10000');
  }
  const receiverKey = receiverOf(params) ?? publicKey;
  const id = ids.uuid();
  const invoice = await callChain(
    operators.makeInvoice({
      id,
      receiverKey,
      // 0 lets the payer choose the amount.
      sats: params.amount_sats === 0 ? undefined : BigInt(params.amount_sats),
      description: descriptionOf(params),
      createdAtSeconds,
      expirySeconds,
      hasSparkAddress: params.include_spark_address === true,
    }),
  );
  return {
    id,
    created_at: isoTime(nowMs),
    updated_at: isoTime(nowMs),
    network,
    status: 'INVOICE_CREATED',
    typename: 'LightningReceiveRequest',
    receiver_identity_public_key: receiverKey,
    invoice: {
      encoded_invoice: invoice.text,
      payment_hash: invoice.paymentHash,
      amount: satoshi(BigInt(params.amount_sats)),
      ...(params.memo === undefined ? {} : { memo: params.memo }),
      expires_at: isoTime((createdAtSeconds + expirySeconds) * 1000),
    },
  };
}

function descriptionOf({ memo, description_hash: hash }: Params): { text: string } | { hash: string } {
  if (hash !== undefined) {
    if (memo === undefined) return { hash: hash.toLowerCase() };
    throw invalidField('/params/description_hash', 'expected either `memo` or `description_hash`');
  }
  const text = memo ?? '';
  if (new TextEncoder().encode(text).length <= MOST_MEMO_BYTES) return { text };
  throw invalidField('/params/memo', `expected at most ${MOST_MEMO_BYTES} bytes`);
}

function receiverOf({ receiver_identity_pubkey: key }: Params): string | undefined {
  if (key === undefined || isIdentityKey(key)) return key?.toLowerCase();
  throw invalidField('/params/receiver_identity_pubkey', 'expected a compressed key, 66 hex digits');
}
