import assert from 'node:assert/strict';
import {
  isIdentityKey,
  isLayer1Address,
  readTokenIdentifier,
  type SparkNetworkName,
  sparkAddress,
  sparkDepositAddress,
} from '../../../engine/signing/spark.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  SparkBalance,
  SparkCoopExitFeeQuote,
  SparkCurrencyAmount,
  SparkGetClaimStaticDepositQuoteRpcResponseData,
  SparkGetStaticDepositAddressRpcResponseData,
  SparkLightningReceiveRequest,
  WalletRpcRequest,
} from '../../../generated/schemas.ts';
import type { PlainChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { SparkDepositQuote, SparkOperators } from '../../../ports/spark.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { callChain } from '../sending/call-chain.ts';

/** A wallet on one Spark network. */
export interface SparkAccount {
  readonly network: SparkNetworkName;
  readonly chain: PlainChain;
  readonly operators: SparkOperators;
  /** The compressed public key in hex. */
  readonly publicKey: string;
  readonly address: string;
  readonly depositAddress: string;
}

/**
 * Returns the wallet's account on a Spark network. One key has a different address on each network.
 *
 * @throws ApiError not_supported when no operators are configured for the network.
 */
export function requireSpark(
  { chains }: Pick<OperationContext, 'chains'>,
  { public_key: publicKey }: Pick<WalletRow, 'public_key'>,
  network: SparkNetworkName = 'MAINNET',
): SparkAccount {
  const chain = chains.find(`spark:${network.toLowerCase()}`);
  if (chain?.kind !== 'plain' || chain.spark === undefined) {
    throw new ApiError('not_supported', `/network: no operators of Spark's ${network} are configured here`);
  }
  assert(publicKey !== null, 'a spark wallet has its key beside its address');
  return {
    network,
    chain,
    operators: chain.spark,
    publicKey,
    address: sparkAddress(publicKey, network),
    depositAddress: sparkDepositAddress(publicKey, network),
  };
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function satoshi(sats: bigint): SparkCurrencyAmount {
  return { original_value: Number(sats), original_unit: 'SATOSHI' };
}

type Params = Extract<WalletRpcRequest, { method: 'createLightningInvoice' }>['params'];

// CHOICE: an invoice expires after 30 days by default, as in Spark's own wallets.
const USUAL_EXPIRY_SECONDS = 30 * 24 * 3600;
const MAX_MEMO_BYTES = 639;
/** The largest timestamp of an invoice: BOLT 11 encodes it in 35 bits. */
const LAST_SECOND = 2 ** 35 - 1;
/** 9999-12-31T23:59:59Z, the last second that the formats of the API can express. */
const LAST_EXPIRY_SECOND = 253_402_300_799;

/**
 * Creates an invoice of the operators' node that pays the wallet or another identity key.
 *
 * CHOICE: each call creates a new invoice and stores nothing, because the invoice itself names its receiver.
 *
 * @throws ApiError invalid_data; not_supported when the current time cannot be encoded in an invoice;
 * transaction_broadcast_failure when the operators cannot be reached.
 */
async function makeInvoice(
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
      // With 0, the payer chooses the amount.
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
  if (new TextEncoder().encode(text).length <= MAX_MEMO_BYTES) return { text };
  throw invalidField('/params/memo', `expected at most ${MAX_MEMO_BYTES} bytes`);
}

function receiverOf({ receiver_identity_pubkey: key }: Params): string | undefined {
  if (key === undefined || isIdentityKey(key)) return key?.toLowerCase();
  throw invalidField('/params/receiver_identity_pubkey', 'expected a compressed key, 66 hex digits');
}

type Request<Method extends string> = Extract<WalletRpcRequest, { method: Method }>;
type Questions = {
  readonly getBalance: SparkBalance;
  readonly getStaticDepositAddress: SparkGetStaticDepositAddressRpcResponseData;
  readonly getClaimStaticDepositQuote: SparkGetClaimStaticDepositQuoteRpcResponseData;
  readonly getWithdrawalFeeQuote: SparkCoopExitFeeQuote;
  readonly createLightningInvoice: SparkLightningReceiveRequest;
};
type SparkQuery = Request<keyof Questions>;

type AskContext = Pick<OperationContext, 'chains' | 'ids' | 'nowMs'>;
type Asker<Method extends keyof Questions> = (
  context: AskContext,
  account: SparkAccount,
  request: Request<Method>,
) => Promise<Questions[Method]>;

const askers: { readonly [Method in keyof Questions]: Asker<Method> } = {
  async getBalance(_context, { operators, address, network }) {
    const { sats, tokens } = await callChain(operators.holdings(address));
    const views = tokens.map(({ identifier, rawAmount, decimals, symbol, issuerKey }) => {
      const metadata = {
        raw_token_identifier: readTokenIdentifier(identifier, network) ?? '',
        token_public_key: issuerKey,
        token_name: symbol,
        token_ticker: symbol,
        decimals,
        max_supply: '0',
      };
      return [identifier, { balance: String(rawAmount), token_metadata: metadata }] as const;
    });
    return { balance: String(sats), token_balances: Object.fromEntries(views) };
  },
  async getStaticDepositAddress(_context, { depositAddress }) {
    return { address: depositAddress };
  },
  async getClaimStaticDepositQuote(_context, account, { params }) {
    const quote = await findDeposit(account, params);
    return {
      transaction_id: params.transaction_id,
      output_index: quote.outputIndex,
      network: account.network,
      credit_amount_sats: Number(quote.creditSats),
      signature: quote.signature,
    };
  },
  async getWithdrawalFeeQuote({ nowMs }, account, { params }) {
    const { onchain_address: onchainAddress, amount_sats: amount } = params;
    if (!isLayer1Address(onchainAddress, account.network)) {
      throw invalidField('/params/onchain_address', `expected a Bitcoin address of ${account.network}`);
    }
    const sats = BigInt(amount);
    const quote = await callChain(account.operators.quoteWithdrawal({ onchainAddress, sats }));
    if (quote === undefined) throw new ApiError('not_supported', 'the operators quote no such withdrawal');
    const { FAST, MEDIUM, SLOW } = quote.fees;
    return {
      id: quote.id,
      network: account.network,
      created_at: isoTime(nowMs),
      updated_at: isoTime(nowMs),
      expires_at: isoTime(quote.expiresAtMs),
      total_amount: satoshi(sats),
      user_fee_fast: satoshi(FAST.operatorSats),
      user_fee_medium: satoshi(MEDIUM.operatorSats),
      user_fee_slow: satoshi(SLOW.operatorSats),
      l1_broadcast_fee_fast: satoshi(FAST.networkSats),
      l1_broadcast_fee_medium: satoshi(MEDIUM.networkSats),
      l1_broadcast_fee_slow: satoshi(SLOW.networkSats),
    };
  },
  createLightningInvoice: (context, account, { params }) => makeInvoice(context, account, params),
};

/**
 * Gets the operators' quote for a deposit to the wallet.
 *
 * @throws ApiError invalid_data when the transaction paid nothing, or too little, to the wallet's deposit address;
 * transaction_broadcast_failure when the operators cannot be reached.
 */
export async function findDeposit(
  { operators, depositAddress }: SparkAccount,
  params: { readonly transaction_id: string; readonly output_index?: number | undefined },
): Promise<SparkDepositQuote> {
  const { transaction_id: transactionId, output_index: outputIndex } = params;
  const quote = await callChain(operators.quoteDeposit({ depositAddress, transactionId, outputIndex }));
  if (quote !== undefined) return quote;
  throw invalidField(
    '/params/transaction_id',
    `expected a transaction that pays \`${depositAddress}\` more than it costs to take it up`,
  );
}

export function isSparkQuery(request: WalletRpcRequest): request is SparkQuery {
  return Object.hasOwn(askers, request.method);
}

/**
 * Reads data about a wallet from a Spark network, and returns the `data` of the method's response. Runs before the
 * caller is authorized.
 *
 * @throws ApiError not_supported; invalid_data; transaction_broadcast_failure when the operators cannot be reached.
 */
export function askSparkNetwork(
  context: AskContext,
  wallet: WalletRow,
  request: SparkQuery,
): Promise<object> {
  const ask = askers[request.method] as (...given: readonly unknown[]) => Promise<object>;
  return ask(context, requireSpark(context, wallet, request.network), request);
}
