import { ApiError, invalidField } from '../../../errors.ts';
import type {
  SparkBalance,
  SparkCoopExitFeeQuote,
  SparkGetClaimStaticDepositQuoteRpcResponseData,
  SparkGetStaticDepositAddressRpcResponseData,
  SparkLightningReceiveRequest,
  WalletRpcRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { SparkDepositQuote } from '../../../ports/spark-operators.ts';
import { isLayer1Address } from '../../../signing/layer-1-address.ts';
import { readTokenIdentifier } from '../../../signing/spark.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { callChain } from '../sending/call-chain.ts';
import { makeInvoice } from './make-invoice.ts';
import { requireSpark, type SparkAccount } from './require-spark.ts';
import { isoTime, satoshi } from './spark-view.ts';

type Request<Method extends string> = Extract<WalletRpcRequest, { method: Method }>;
type Questions = {
  readonly getBalance: SparkBalance;
  readonly getStaticDepositAddress: SparkGetStaticDepositAddressRpcResponseData;
  readonly getClaimStaticDepositQuote: SparkGetClaimStaticDepositQuoteRpcResponseData;
  readonly getWithdrawalFeeQuote: SparkCoopExitFeeQuote;
  readonly createLightningInvoice: SparkLightningReceiveRequest;
};
export type SparkQuestion = Request<keyof Questions>;

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
 * The quote for a deposit to the wallet.
 *
 * @throws ApiError invalid_data when the transaction paid nothing, or too little, to the wallet's deposit address.
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

export function isSparkQuestion(request: WalletRpcRequest): request is SparkQuestion {
  return Object.hasOwn(askers, request.method);
}

/**
 * Queries a Spark network about a wallet and returns the method's wire data. Runs before the caller is authorized.
 *
 * @throws ApiError not_supported; invalid_data; transaction_broadcast_failure when the operators cannot be reached.
 */
export function planSparkAnswer(
  context: AskContext,
  wallet: WalletRow,
  request: SparkQuestion,
): Promise<object> {
  const ask = askers[request.method] as (...given: readonly unknown[]) => Promise<object>;
  return ask(context, requireSpark(context, wallet, request.network), request);
}
